"""What ethtool 6.1 says of a card, by option: two halves of channels and rings, one of others."""

ETHTOOL = {
    "-l": """\
Channel parameters for eth0:
Pre-set maximums:
RX:\t\tn/a
TX:\t\tn/a
Other:\t\tn/a
Combined:\t32
Current hardware settings:
RX:\t\tn/a
TX:\t\tn/a
Other:\t\tn/a
Combined:\t8
""",
    "-g": """\
Ring parameters for eth0:
Pre-set maximums:
RX:\t\t1024
RX Mini:\tn/a
RX Jumbo:\tn/a
TX:\t\t1024
Current hardware settings:
RX:\t\t256
RX Mini:\tn/a
RX Jumbo:\tn/a
TX:\t\t256
""",
    "-c": """\
Coalesce parameters for eth0:
Adaptive RX: n/a  TX: n/a
stats-block-usecs: n/a

rx-usecs: n/a
rx-frames: 1
""",
    "-k": """\
Features for eth0:
rx-checksumming: on [fixed]
generic-receive-offload: on
\ttx-tcp-segmentation: on
""",
}
