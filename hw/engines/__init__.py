"""The engines: what does the work of an SQE. AI cores, AI-CPU, copy engine; and `null`, which does nothing.

They do not schedule: the task scheduler says when, an engine says how, how long, and how a failure is called.
"""
