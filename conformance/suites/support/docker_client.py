"""Stands in for the Docker client of aio-pika's and aiormq's tests: its container is the broker under test."""

import os
from dataclasses import dataclass, field


class DockerNotAvailableError(Exception):
    """Raised by the original where there is no Docker."""


@dataclass
class DockerHostInfo:
    container_host: str = "127.0.0.1"


@dataclass
class ContainerInfo:
    id: str = "broker"
    host: str = "127.0.0.1"
    ports: dict[str, int] = field(default_factory=dict)


def check_docker_available() -> DockerHostInfo:
    return DockerHostInfo()


class DockerClient:
    def __init__(self, docker_host_info=None):
        pass

    def run(self, image, ports, environment=None) -> ContainerInfo:
        # pytest-xdist names its processes gw0, gw1...
        process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
        port, tls_port = (int(os.environ[name].split()[process]) for name in ("COURSER_SUITE_PORTS", "COURSER_SUITE_TLS_PORTS"))
        return ContainerInfo(ports={"5672/tcp": port, "5671/tcp": tls_port})

    def kill(self, container_id): ...

    def remove(self, container_id): ...
