"""Tests of `aclrt.graph`."""
