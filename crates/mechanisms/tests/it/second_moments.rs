//! Second moments: sensitivities at vertices, scales, noise off.
