"""The algorithms, one readable file each: ``Config``, ``train(config)``, and the class between."""
