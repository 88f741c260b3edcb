"""gymnasium's vector environments over the compiled core; no torch."""
