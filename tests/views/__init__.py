"""Tests of the views. Not of what fills their listings."""
