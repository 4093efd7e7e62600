"""Riders who all want the same: processes of their own, each with a connection of its own, that ask in one moment."""

import multiprocessing
from datetime import datetime, timedelta, timezone

import requests

# All of a crowd wait for the last one, and each of them works on the same two cores.
PATIENCE = 240


def moment(hours: float) -> str:
    return (datetime.now(timezone.utc) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Crowd:
    """`size` processes, which are shared out to riders and to servers."""

    def __init__(self, size: int, riders: list, urls: list[str] | None = None):
        context = multiprocessing.get_context("fork")
        urls = urls or [riders[0].server.url]
        self.pipes, self.processes = [], []
        self.barrier = context.Barrier(size)
        for number in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=self._work, args=(theirs, riders[number % len(riders)], urls[number % len(urls)]), daemon=True)
            process.start()
            self.pipes.append(ours)
            self.processes.append(process)

    def _work(self, pipe, rider, url):
        session = requests.Session()
        session.verify, session.trust_env = rider.server.verify, False
        session.get(url + "/healthz", timeout=PATIENCE)
        while wanted := pipe.recv():
            # The server's name is the same whichever of its machines answers.
            headers = {
                "Authorization": f"DPoP {rider.access}", "DPoP": rider.proof("POST", "/v1/bookings", rider.access)
            }
            self.barrier.wait(PATIENCE)
            answer = session.post(url + "/v1/bookings", json=wanted, headers=headers, timeout=PATIENCE)
            pipe.send((answer.status_code, answer.json()))

    def books(self, vehicle: str, begin: str, end: str) -> list[tuple[int, dict]]:
        """Each asks once, all in one moment; what each is answered."""
        for pipe in self.pipes:
            pipe.send({"vehicle": vehicle, "from": begin, "to": end})
        return [pipe.recv() for pipe in self.pipes]

    def close(self):
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.processes:
            process.join(PATIENCE)
