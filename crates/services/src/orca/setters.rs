//! The setters that the recorders of servers and calls share.

/// Declares the setters that both recorders have.
macro_rules! setters {
    () => {
        /// Sets the fraction of the CPU in use; more than 1 beyond a soft limit.
        pub fn set_cpu_utilization(&self, value: impl Into<Option<f64>>) {
            set(&mut self.0.lock().cpu_utilization, value.into(), is_positive);
        }

        /// Sets the fraction of the memory in use.
        pub fn set_memory_utilization(&self, value: impl Into<Option<f64>>) {
            set(&mut self.0.lock().memory_utilization, value.into(), is_fraction);
        }

        /// Sets the utilization as the application defines it, which clients use in place of the CPU's; more than 1
        /// beyond a soft limit.
        pub fn set_application_utilization(&self, value: impl Into<Option<f64>>) {
            set(&mut self.0.lock().application_utilization, value.into(), is_positive);
        }

        /// Sets the queries per second of the whole server.
        pub fn set_qps(&self, value: impl Into<Option<f64>>) {
            set(&mut self.0.lock().qps, value.into(), is_positive);
        }

        /// Sets the errors per second of the whole server.
        pub fn set_eps(&self, value: impl Into<Option<f64>>) {
            set(&mut self.0.lock().eps, value.into(), is_positive);
        }

        /// Sets the fraction of another resource in use.
        pub fn set_utilization(&self, name: impl Into<String>, value: impl Into<Option<f64>>) {
            set_named(&mut self.0.lock().utilization, name.into(), value.into(), is_fraction);
        }

        /// Sets a measurement that only the application knows.
        pub fn set_named_metric(&self, name: impl Into<String>, value: impl Into<Option<f64>>) {
            set_named(&mut self.0.lock().named_metrics, name.into(), value.into(), f64::is_finite);
        }
    };
}

pub(super) use setters;
