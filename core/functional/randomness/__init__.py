"""Random numbers, and draws that depend on a tensor."""
