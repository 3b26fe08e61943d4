# Which slot a worker sends next, and when it is due: phase + floor((origin + slot) * num / den)
# nanoseconds after the start. Worker strides are added as whole part and remainder, so there is no
# division a packet, no drift, and the result equals the closed form at every slot.

ctypedef struct turn_t:
    uint32_t packet
    uint32_t rank
    uint32_t weight

ctypedef struct group_record_t:
    uint64_t base
    uint64_t first
    uint64_t end
    uint64_t stride
    uint64_t num
    uint64_t den
    uint64_t origin
    uint64_t phase
    uint32_t first_turn
    uint32_t turns

ctypedef struct group_t:
    uint64_t base
    uint64_t slot           # next slot of this worker, inside the group
    uint64_t end
    uint64_t stride
    uint64_t due            # of `slot`, with `rest` / den left over
    uint64_t rest
    uint64_t due_step
    uint64_t rest_step
    uint64_t den
    uint64_t round          # slot = round * turns + position
    uint64_t round_step
    uint32_t position
    uint32_t position_step
    uint32_t turns
    turn_t* turn


cdef void group_start(group_t* group, const group_record_t* record, turn_t* turns) noexcept nogil:
    group.base = record.base
    group.slot = record.first
    group.end = record.end
    group.stride = record.stride
    group.den = record.den
    group.due = record.phase + muldiv64(record.origin + record.first, record.num, record.den, &group.rest)
    group.due_step = muldiv64(record.stride, record.num, record.den, &group.rest_step)
    group.turns = record.turns
    group.turn = turns + record.first_turn
    group.round = record.first // record.turns
    group.position = <uint32_t>(record.first % record.turns)
    group.round_step = record.stride // record.turns
    group.position_step = <uint32_t>(record.stride % record.turns)


cdef inline void group_advance(group_t* group) noexcept nogil:
    group.slot += group.stride
    group.round += group.round_step
    group.position += group.position_step
    if group.position >= group.turns:
        group.position -= group.turns
        group.round += 1
    if group.due < <uint64_t>1 << 62:
        group.due += group.due_step
        group.rest += group.rest_step
        if group.rest >= group.den:
            group.rest -= group.den
            group.due += 1


def pace_walk(uint64_t num, uint64_t den, uint64_t first, uint64_t stride, uint32_t count):
    """Due times in nanoseconds of `count` slots of one worker from `first` on, as the send loop steps them."""
    cdef group_record_t record
    cdef group_t group
    cdef turn_t turn = [0, 0, 1]
    record.base, record.first, record.end, record.stride = 0, first, <uint64_t>-1, stride
    record.num, record.den, record.first_turn, record.turns = num, den, 0, 1
    record.origin, record.phase = 0, 0
    group_start(&group, &record, &turn)
    found = []
    for _ in range(count):
        found.append(group.due)
        group_advance(&group)
    return found
