"""Pictures of 8-bit integers, a byte each: borders around them, and their max pooling, by vectors of bytes, of which
there are four times as many as of numbers of 32 bits."""
