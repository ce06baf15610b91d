"""Normal models (build, bind, labels, execute) and what every model has. Not captured graphs (`aclrt.graph`)."""
