import pytest

from fabric.core.settings import MetricsSettings, SettingsError, TraceSettings


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "", "localhost:9000", "[::1]:1", "127.9.9.9:5"])
def test_metrics_on_loopback_or_off(listen):
    assert MetricsSettings(listen=listen).listen == listen


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"listen": "0.0.0.0:9"}, "allow_remote"), ({"listen": "host:9"}, "allow_remote"),
        ({"listen": "127.0.0.1"}, "address:port"), ({"listen": "127.0.0.1:99999"}, "address:port"),
        ({"listen": "127.0.0.1:²"}, "address:port"), ({"refresh_s": 0.0}, "refresh_s"),
    ],
)  # fmt: skip
def test_wrong_metrics_settings(values, rule):
    with pytest.raises(SettingsError, match=rule):
        MetricsSettings(**values)


def test_beyond_loopback_when_told():
    assert MetricsSettings(listen="0.0.0.0:9", allow_remote=True).allow_remote


@pytest.mark.parametrize("values", [{"share": 1.1}, {"share": -0.1}, {"endpoint": "host:4318"}])
def test_wrong_trace_settings(values):
    with pytest.raises(SettingsError):
        TraceSettings(**values)
