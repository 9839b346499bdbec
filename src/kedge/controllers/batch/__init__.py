"""Controllers of rollouts in batches: observe a rollout and its workloads, plan one step, act."""
