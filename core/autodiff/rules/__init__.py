"""The backward rules of the primitives, a file for each family, loaded when one of its primitives is first recorded.

A rule takes the inner operands and the inner result, and returns `pull`: a function from the gradient of the result to
the list of those of the operands. What pull refers to is kept until the backward pass, so that a rule refers to as
little as it can.
"""
