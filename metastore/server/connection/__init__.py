"""The clients' connections. Each is in one state at a time, a small object with the data of that state alone.

    Receiving         → LookingUp, Answering, WaitingForMemory, Refusing, Discarding
    WaitingForMemory  → LookingUp, Answering, Receiving, Refusing, Discarding
    LookingUp         → Receiving, Writing, Answering
    Answering         → Receiving, Writing, WaitingForEvents, Refusing
    WaitingForEvents  → Answering
    Writing           → Receiving
    Refusing          → Receiving, Writing
    Discarding        (nothing follows)

A connection begins by receiving. It may end in any state.
"""
