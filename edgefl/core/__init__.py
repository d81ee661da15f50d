"""What everything stands on: errors, units, seeds, names, costs and plans. No torch, no simpy."""
