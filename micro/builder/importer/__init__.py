"""From the compiler's typed IR to a graph of float32 layers. Each file holds a family of operators."""
