"""The recordings of the shipped runtime, replayed on the null device."""
