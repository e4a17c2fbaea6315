//! GPU runtime: shapes to launches through the CUDA driver.
