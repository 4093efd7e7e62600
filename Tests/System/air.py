"""Bluetooth controllers that hear each other: Google's Bumble, each behind a port of its own that speaks H4.

    python3 air.py left=tcp-server:127.0.0.1:9001 rider=tcp-server:127.0.0.1:9002 --level left:rider=-50

With --echo an adapter sends what another sends once more, some time later, from where it is itself.

Any of Bumble's transports does; `vhci` makes it an adapter of this machine's kernel. Bumble's own link reports every
frame at -50 dBm and as a scan response too, and legacy ones only of senders that can be connected to; here each pair
has a level of its own. Who has none is not heard.
"""

import argparse
import asyncio
import random
import sys

from bumble import hci, ll
from bumble.controller import Controller, LegacyAdvertiser
from bumble.link import LocalLink
from bumble.transport import open_transport

EXTENDED = hci.LeFeatureMask.LE_EXTENDED_ADVERTISING
NON_CONNECTABLE = hci.HCI_LE_Set_Advertising_Parameters_Command.AdvertisingType.ADV_NONCONN_IND
# Core 5.4, Vol 4, Part E, 7.7.65.13: a legacy PDU, neither connectable nor scannable.
LEGACY = hci.HCI_LE_Extended_Advertising_Report_Event.EventType.LEGACY_ADVERTISING_PDU_USED


class Beacon(LegacyAdvertiser):
    """A Bluetooth 4 controller's only advertiser."""

    def _on_timer_fired(self):
        self.send_advertising_data()
        interval = self.advertising_interval_min * 0.625 / 1000
        self.timer_handle = asyncio.get_running_loop().call_later(interval, self._on_timer_fired)

    def send_advertising_data(self):
        if self.enabled and self.advertising_type == NON_CONNECTABLE:
            # What was set is 31 bytes, filled up with zeros.
            self.controller.send_advertising_pdu(ll.AdvExtInd(self.address, bytes(self.advertising_data).rstrip(b"\0")))


class Adapter(Controller):
    def __init__(self, *arguments, sets: int, **more):
        super().__init__(*arguments, **more)
        self.le_legacy_advertiser = Beacon(self)
        self.sets = sets

    def on_hci_reset_command(self, command):
        self.le_scan_enable = False
        self.le_legacy_advertiser.stop()
        self.on_hci_le_clear_advertising_sets_command(command)
        return super().on_hci_reset_command(command)

    def on_hci_le_set_extended_advertising_enable_command(self, command):
        # Bumble would have a set that is enabled twice send twice as often.
        for handle in command.advertising_handles:
            if handle in self.advertising_sets:
                self.advertising_sets[handle].stop()
        return super().on_hci_le_set_extended_advertising_enable_command(command)

    def on_hci_le_read_number_of_supported_advertising_sets_command(self, command):
        parameters = super().on_hci_le_read_number_of_supported_advertising_sets_command(command)
        parameters.num_supported_advertising_sets = self.sets
        return parameters

    def hears(self, pdu, rssi: int):
        if not self.le_scan_enable:
            return
        address = pdu.advertiser_address
        if self.le_features & EXTENDED:
            report = hci.HCI_LE_Extended_Advertising_Report_Event.Report(
                event_type=LEGACY,
                address_type=address.address_type,
                address=address,
                primary_phy=hci.Phy.LE_1M,
                secondary_phy=0,
                advertising_sid=0xFF,
                tx_power=127,
                rssi=rssi,
                periodic_advertising_interval=0,
                direct_address_type=0,
                direct_address=hci.Address.ANY,
                data=pdu.data,
            )
            self.send_hci_packet(hci.HCI_LE_Extended_Advertising_Report_Event([report]))
        else:
            report = hci.HCI_LE_Advertising_Report_Event.Report(
                event_type=hci.HCI_LE_Advertising_Report_Event.EventType.ADV_NONCONN_IND,
                address_type=address.address_type,
                address=address,
                data=pdu.data,
                rssi=rssi,
            )
            self.send_hci_packet(hci.HCI_LE_Advertising_Report_Event([report]))


class Air(LocalLink):
    """Has a level for each pair: the RSSI of the sender at the receiver, in dBm."""

    def __init__(self, levels: dict[tuple[str, str], int], echoes: list[tuple[str, str, float]]):
        super().__init__()
        self.levels, self.echoes = levels, echoes
        self._chance = random.Random(1)

    def send_advertising_pdu(self, sender_controller, packet):
        for source, copier, delay in self.echoes:
            if source == sender_controller.name:
                adapter = next(each for each in self.controllers if each.name == copier)
                asyncio.get_running_loop().call_later(delay, self.send_advertising_pdu, adapter, packet)
        for receiver in self.controllers:
            level = self.levels.get((sender_controller.name, receiver.name))
            if level is not None:
                receiver.hears(packet, round(level + self._chance.gauss(0, 1)))


def pair(text: str) -> tuple[tuple[str, str], int]:
    names, _, level = text.partition("=")
    sender, _, receiver = names.partition(":")
    return (sender, receiver), int(level)


def echo(text: str) -> tuple[str, str, float]:
    names, _, delay = text.partition("=")
    source, _, copier = names.partition(":")
    return source, copier, float(delay)


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("adapters", nargs="+", metavar="NAME=TRANSPORT")
    parser.add_argument("--level", action="append", type=pair, default=[], metavar="SENDER:RECEIVER=DBM")
    parser.add_argument("--echo", action="append", type=echo, default=[], metavar="SENDER:COPIER=SECONDS")
    parser.add_argument("--sets", type=int, default=4, help="how many beacons each can be at a time")
    parser.add_argument("--bt4", action="store_true", help="without Bluetooth 5's commands")
    arguments = parser.parse_args()
    air = Air(dict(arguments.level), arguments.echo)
    transports = []
    for number, text in enumerate(arguments.adapters, start=1):
        name, _, spec = text.partition("=")
        transport = await open_transport(spec)
        transports.append(transport)  # kept, or it is closed
        address = f"00:00:5E:00:53:{number:02X}"
        adapter = Adapter(name, transport.source, transport.sink, link=air, public_address=address, sets=arguments.sets)
        if arguments.bt4:
            adapter.le_features &= ~EXTENDED
    print("air: ready", file=sys.stderr, flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
