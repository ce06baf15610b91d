"""Views: texts for people, made from plain listings. Not the models, streams and devices that are listed."""
