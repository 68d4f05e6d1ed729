"""How a request is sent and timed: one HTTP exchange over a kept-alive connection, stamped by the kernel.

`timed.TimedClient` is the front door and `reply.Reply` what comes out of it. `stamps`, `framing`, `sse`, `message` and
`reply` are pure; `channel`, `tls`, `opening`, `quiet` and `connection` deal with sockets on gevent's event loop.
"""
