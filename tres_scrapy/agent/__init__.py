"""The agent that learns the value of a fetch: Q-network, replay, Double DQN (P 2.4.2)."""
