//! What a base station can do for TCP: one folder per paper
