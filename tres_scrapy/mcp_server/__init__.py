"""A guest: crawls for agents, served by the Model Context Protocol."""
