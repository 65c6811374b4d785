"""The simulator of rounds: small numbers of workers, and sums that are known."""

from dataclasses import replace

import pytest

simpy = pytest.importorskip("simpy")

from tests.benchmarks.simulation import measure  # noqa: E402 (it needs SimPy)
from tests.benchmarks.simulation.costs import Costs  # noqa: E402
from tests.benchmarks.simulation.engine import Cores, Link, Node, transfer  # noqa: E402
from tests.benchmarks.simulation.job import Job  # noqa: E402
from tests.benchmarks.simulation.protocol import Cluster, Setting, simulate  # noqa: E402

COSTS = replace(Costs.load(), jitter=0.0)
FREE = replace(
    COSTS,
    send=0.0,
    receive=0.0,
    send_byte=0.0,
    receive_byte=0.0,
    ask=0.0,
    answer=0.0,
    idle=0.0,
    client_idle=0.0,
)
JOB = Job(10_000, features=60)
NETWORK = Link(10, 50e-6)
WAYS = {
    "star": Setting(star=True),
    "one level": Setting(),
    "two levels": Setting(group=4),
    "uneven groups": Setting(group=3, fan_out=2),
    "relays": Setting(group=4, fan_out=3),
}


def test_cores_are_shared():
    env, ends = simpy.Environment(), []
    cores = Cores(env, 2)

    def work(begin, seconds):
        yield env.timeout(begin)
        yield cores.work(seconds)
        ends.append(env.now)

    # Three share two cores until 1.5, when the last two have had 2/3 of a second, but for the one that comes later.
    for begin, seconds in ((0, 1.0), (0, 1.0), (0, 1.0), (3, 2.0)):
        env.process(work(begin, seconds))
    env.run()
    assert ends == pytest.approx([1.5, 1.5, 1.5, 5.0])


def test_messages_pass_a_link_one_after_another():
    env, ends = simpy.Environment(), []
    nodes = [Node(env, Cores(env, 1), 1, 1) for _ in range(3)]
    link = Link(gbit=8, latency=0.5)  # 10^9 bytes per second

    def send(sender):
        yield from transfer(nodes[sender], nodes[2], link, 10**9)
        ends.append(env.now)

    env.process(send(0))
    env.process(send(1))
    env.run()
    assert ends == pytest.approx([1.5, 2.5])
    assert nodes[2].down.n_bytes == nodes[0].up.n_bytes + nodes[1].up.n_bytes == 2 * 10**9


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("n_workers", [1, 2, 13])
def test_all_bytes_arrive_and_nothing_is_random(name, n_workers):
    cluster = Cluster(n_workers, link=NETWORK)
    found, again = (simulate(JOB, cluster, WAYS[name], replace(COSTS, jitter=0.1)) for _ in range(2))
    assert found == again
    assert found.sent == pytest.approx(found.received)
    assert found.seconds == pytest.approx(sum(found.stages.values()))


def test_one_worker_takes_the_sum_of_its_work():
    found = simulate(JOB, Cluster(1), Setting(), FREE)
    expected = JOB.leaf_seconds(FREE) + FREE.client_round
    for level in (JOB.root, *JOB.levels):
        summed, searched = (
            JOB.numbers(level.n_nodes, JOB.features),
            JOB.numbers(level.n_searched, JOB.features),
        )
        expected += JOB.sum_seconds(level, FREE) + FREE.own_number * summed
        expected += FREE.search_number * searched
    combined = (len(JOB.levels) + 2) * 10_000 * FREE.add_number
    assert found.seconds == pytest.approx(expected, abs=combined)
    assert found.pieces == 0


def test_workers_that_share_cores_take_as_long_as_all_their_work():
    found = simulate(JOB, Cluster(8, shared_cores=2), Setting(), replace(FREE, crowd=0.0))
    assert found.seconds == pytest.approx((found.worker_cpu + found.client_cpu) / 2, rel=0.15)


def test_the_work_of_a_star_grows_with_each_worker():
    few, more, most = (simulate(JOB, Cluster(n, link=NETWORK), WAYS["star"], COSTS) for n in (10, 20, 30))
    assert more.client_bytes == 2 * few.client_bytes
    assert most.client_cpu - more.client_cpu == pytest.approx(more.client_cpu - few.client_cpu, rel=0.1)
    assert most.seconds - more.seconds == pytest.approx(more.seconds - few.seconds, rel=0.1)


def test_groups_send_few_pieces_and_relays_keep_the_client_from_growing():
    few, many = (
        simulate(JOB, Cluster(n, link=NETWORK), Setting(group=g, fan_out=4), COSTS)
        for n, g in ((16, 4), (36, 6))
    )
    n_questions = len(JOB.levels) + 1
    assert few.pieces == n_questions * (3 + 3)
    assert many.pieces == n_questions * (5 + 5)
    assert many.client_bytes == few.client_bytes
    direct = simulate(JOB, Cluster(16, link=NETWORK), Setting(), COSTS)
    assert direct.pieces == n_questions * 15
    tables = 3000 + JOB.leaf_bytes  # with relays, one of them reaches the client
    assert direct.client_bytes - 16 * tables == 4 * (few.client_bytes - tables)


def test_bins_without_rows_do_not_travel():
    level = JOB.levels[-1]
    few, all_bins = (replace(JOB, rows=rows).piece(level, 60, COSTS, 1) for rows in (1_000, 10**6))
    assert few[1] < 0.3 * all_bins[1]
    assert all_bins[1] == pytest.approx(JOB.numbers(16, 60, padded=False))
    assert few[0] == pytest.approx(4 * few[1] + 16 * 60 * JOB.bins)  # sums of 32 bits, and a mask


def test_rows_are_measured_in_a_training():
    """Each part of a round is noted, with the rows that it sums."""
    stages = measure.trained(2_000)
    job = Job(2_000, measure.FEATURES, measure.CLASSES, measure.DEPTH, measure.BINS)
    assert stages["root", 1].n_rows == 2_000
    for level in job.levels:
        assert 0 < stages["tally", level.n_nodes].n_rows <= 1_000
        assert stages["histogram", level.n_nodes].seconds > stages["answer", level.n_nodes].seconds > 0
    assert stages["update", 1].seconds > stages["root", 1].seconds
    assert stages["sums", 0].seconds > 0
