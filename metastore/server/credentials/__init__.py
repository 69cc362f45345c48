"""What clients prove who they are with, and how it is checked. It knows no connections.

Checks may take long: they read files, ask other servers, and compute slow hashes. They run in the threads of
`logins.Logins`, never in the event loop.
"""
