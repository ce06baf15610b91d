"""Streams and what orders them: contexts, events, notifies, labels, transfers, callbacks. Not the models built from
them."""
