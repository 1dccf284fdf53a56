//! Test kit: enumeration, neighbour tables, statistical alarms, the broken mechanisms and the attacks on them.
