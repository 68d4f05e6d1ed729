"""Results of other load generators beside ours, and ours for other programs: JUnit, OpenMetrics, Grafana."""
