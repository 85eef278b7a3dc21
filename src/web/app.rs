//! The state that handlers share: the service, and the bounds of its work.

use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;

use super::admission::WorkPermits;
use super::metrics_page::MetricsPage;
use crate::auth::Shared;
use crate::config::Settings;
use crate::startup::Service;

/// The state that handlers share.
#[derive(Clone)]
pub(crate) struct App {
    /// Allocator, ledger and clock.
    pub(crate) service: Arc<Service>,
    /// The text of `/metrics`.
    pub(crate) metrics_page: MetricsPage,
    /// Places for work that costs processor time, or connections of the ledger.
    pub(crate) work_permits: Arc<WorkPermits>,
    /// How long a requested change can be approved.
    pub(crate) approval_limit: Duration,
    /// The series to which sources and tables are given.
    pub(crate) shared: Arc<Shared>,
}

impl App {
    pub(crate) fn new(
        service: Arc<Service>,
        settings: &Settings,
        prometheus: PrometheusHandle,
    ) -> Self {
        let shown = Arc::clone(&service);
        let metrics_page = MetricsPage::new(move || {
            shown.observe();
            shown.metrics.render(&prometheus)
        });
        let (approval_limit, shared) =
            (settings.written.approval.time_limit.0, Arc::new(settings.shared.clone()));
        let work_permits = Arc::new(WorkPermits::new(&settings.database));
        App { service, metrics_page, work_permits, approval_limit, shared }
    }
}
