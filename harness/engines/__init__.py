"""Who answers: one module per engine, behind the protocol of `harness.engines.base`."""
