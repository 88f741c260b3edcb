"""How things are measured, kept and told, and the experiments of four documents."""
