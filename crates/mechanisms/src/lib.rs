//! The door: private rows, folds with proved sensitivity, mechanisms, releases.
