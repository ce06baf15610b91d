"""Tasks: the vocabulary of work a stream takes, and its way down to SQEs. Not the streams that hold them."""
