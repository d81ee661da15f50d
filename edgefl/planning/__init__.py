"""From a scenario to a plan: names resolved, clients dealt, work traced and priced, misfits refused."""
