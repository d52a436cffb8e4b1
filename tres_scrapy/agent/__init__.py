"""What learns the worth of a fetch: Q-network, replay, Double DQN (P 2.4.2)."""
