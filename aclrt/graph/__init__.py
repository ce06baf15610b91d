"""ACL Graph: captured models, and how they are captured, joined, built, updated and branched."""
