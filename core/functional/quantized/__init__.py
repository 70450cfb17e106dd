"""Small integers for real numbers: quantizing, and products of what is quantized."""
