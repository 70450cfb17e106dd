"""The typed intermediate representation: types, values, arguments, nodes, graphs."""
