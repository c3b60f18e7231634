"""How good draws and surrogates are; everything here takes plain arrays."""
