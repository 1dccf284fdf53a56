//! What a mechanism costs under each neighbour relation, and how costs add up.
