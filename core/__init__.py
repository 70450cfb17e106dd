"""emberlet."""
