"""Helpers that many tasks call, of a few lines each: delay, pushes, noise.

They are functions as a user would write them. What lasts is in memories of the task, what is drawn
comes from the environment's own stream, so both are part of snapshots.
"""

from __future__ import annotations

from typing import Any


def enqueue(queue: Any, values: Any) -> None:
    """Puts ``values`` at the end of a queue and drops as many at its front.

    An action that arrives ``n`` steps late::

        late = pyfastenv.memory(n * 8)

        def control(self, data, action, ctrl):
            ctrl[:] = self.late[:8]

        def step(self, data, action):
            self.simulate(data)
            enqueue(self.late, action)

    Args:
        queue: A memory, ``(n * size,)``; zeros when an episode starts.
        values: ``(size,)``.
    """
    size = len(values)
    kept = len(queue) - size
    for i in range(kept):
        queue[i] = queue[i + size]
    for i in range(size):
        queue[kept + i] = values[i]


def push(velocity: Any, rng: Any, chance: float, speed: float) -> None:
    """Adds a random velocity now and then: ``push(data.qvel[:2], rng, 0.02, 0.5)``.

    Args:
        velocity: ``(n,)`` of ``data.qvel``, before ``simulate``.
        rng: The method's.
        chance: Per call.
        speed: Each component's greatest change [m/s or rad/s].
    """
    if rng.random() < chance:
        for i in range(len(velocity)):
            velocity[i] += rng.uniform(-speed, speed)


def draw_noise(noise: Any, rng: Any, scale: float) -> None:
    """Draws Gaussian noise for the next observation: in ``reset`` and at the end of ``step``.

    ``observation`` adds it, ``obs["gyro"] = data.sensor("gyro").data + self.noise``; it has no
    stream of its own, since it may be asked more than once about the same state.

    Args:
        noise: A memory, ``(n,)``.
        rng: The method's.
        scale: Standard deviation.
    """
    for i in range(len(noise)):
        noise[i] = scale * rng.standard_normal()
