/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two channels that exchange messages over a line that only keeps their order. The driver of
 * the model decides when messages arrive, are handled, are answered and are reported as sent.
 * The model counts RECVs and places in the send queues as channel.c promises them, and works
 * out independently when a slot has to be free. Its drivers are the cases of slot_test.c and
 * the fuzzer of slots.
 */
#ifndef KXFER_PURE_SLOT_MODEL_H
#define KXFER_PURE_SLOT_MODEL_H

#include "base/slot.h"
#include "base/wire.h"

#define MODEL_SLOTS	4
/* Each slot has at most one SEND in flight, which bounds the length of a line. */
#define MODEL_LINE	(4 * MODEL_SLOTS)

struct model_message {
	u8 type;
	u8 slot;
	u64 sequence;
};

/* First in, first out. */
struct model_line {
	struct model_message messages[MODEL_LINE];
	u32 first;
	u32 nr;
};

/* The model's own view of a request, without reading the slot. */
struct model_request {
	struct kxfer_request_slot slot;
	u64 sequence;
	bool taken;		/* busy */
	bool owned;		/* its owner has not released it */
	bool unanswered;
	bool unsent;
};

struct model_reply {
	struct kxfer_reply_slot slot;
	u64 sequence;
	u8 type;
	bool handling;		/* a handler may answer it */
	bool waiting;		/* it has arrived, and waits for a SEND to end */
	bool unsent;
};

/**
 * struct model_side - one end
 * @requests: requests of this side
 * @replies: replies to requests of the other side
 * @recvs: posted RECVs
 * @in: messages on their way to this side
 * @arrived: messages in memory of RECVs, not handled yet
 * @sent: SENDs whose completion was not handled yet
 * @next_sequence: sequence number of its next request
 * @nr_answers: answers received
 * @nr_requests: requests sent
 */
struct model_side {
	struct model_request requests[MODEL_SLOTS];
	struct model_reply replies[MODEL_SLOTS];
	u32 recvs;
	struct model_line in;
	struct model_line arrived;
	struct model_line sent;
	u64 next_sequence;
	u64 nr_answers;
	u64 nr_requests;
};

struct model {
	struct model_side sides[2];
};

static inline void model_init(struct model *model)
{
	memset(model, 0, sizeof(*model));
	model->sides[0].recvs = 2 * MODEL_SLOTS;
	model->sides[1].recvs = 2 * MODEL_SLOTS;
}

static inline void line_push(struct model_line *line, struct model_message message)
{
	line->messages[(line->first + line->nr++) % MODEL_LINE] = message;
}

static inline struct model_message line_pop(struct model_line *line)
{
	struct model_message message = line->messages[line->first];

	line->first = (line->first + 1) % MODEL_LINE;
	line->nr--;
	return message;
}

static inline const char *model_send(struct model *model, u32 side, struct model_message message)
{
	if (model->sides[side].sent.nr >= 2 * MODEL_SLOTS)
		return "a SEND without room in the send queue";
	line_push(&model->sides[side].sent, message);
	line_push(&model->sides[!side].in, message);
	return NULL;
}

/* Checks a slot's statement that it is free now, or not. */
static inline const char *check_freed(struct model_request *request, bool freed)
{
	bool free = request->taken && !request->owned && !request->unanswered &&
		    !request->unsent;

	if (freed != free)
		return freed ? "a slot was freed too early, or twice" : "a slot was not freed";
	if (free)
		request->taken = false;
	return NULL;
}

static inline const char *model_request(struct model *model, u32 side, u32 index)
{
	struct model_side *s = &model->sides[side];
	struct model_request *request = &s->requests[index];
	struct model_message message = {
		.type = KXFER_WIRE_PING,
		.slot = index,
		.sequence = ++s->next_sequence,
	};

	if (kxfer_request_take(&request->slot) == request->taken)
		return request->taken ? "a busy slot was taken" : "a free slot was not";
	if (request->taken)
		return NULL;
	request->taken = true;
	request->owned = true;
	request->unanswered = true;
	request->unsent = true;
	request->sequence = message.sequence;
	s->nr_requests++;
	kxfer_request_posted(&request->slot, message.type, message.sequence);
	return model_send(model, side, message);
}

static inline const char *model_got_answer(struct model_side *s, struct model_message message)
{
	struct model_request *request = &s->requests[message.slot];
	bool owned = request->owned;

	switch (kxfer_request_answered(&request->slot, message.type, message.sequence)) {
	case KXFER_ANSWER_UNASKED:
		return "an answer that was asked for is refused";
	case KXFER_ANSWER_WANTED:
		if (!owned)
			return "an abandoned answer is wanted";
		break;
	case KXFER_ANSWER_ABANDONED:
		if (owned)
			return "a wanted answer is abandoned";
		break;
	}
	request->unanswered = false;
	s->nr_answers++;
	/* An abandoned request has no owner any more; else the receiving owner releases it. */
	return owned ? NULL : check_freed(request, kxfer_request_put(&request->slot));
}

static inline const char *model_got_request(struct model_side *s, struct model_message message)
{
	struct model_reply *reply = &s->replies[message.slot];

	reply->sequence = message.sequence;
	reply->type = message.type;
	switch (kxfer_reply_arrived(&reply->slot)) {
	case KXFER_ARRIVAL_START:
		if (reply->unsent)
			return "a request is handled while its message is the device's";
		reply->handling = true;
		return NULL;
	case KXFER_ARRIVAL_DEFER:
		if (!reply->unsent)
			return "a request is deferred for nothing";
		reply->waiting = true;
		return NULL;
	default:
		return "an honest request is refused";
	}
}

/* The next message arrives in memory. */
static inline const char *model_arrive(struct model *model, u32 side)
{
	struct model_side *s = &model->sides[side];

	if (!s->in.nr)
		return NULL;
	if (!s->recvs)
		return "a SEND without a RECV";
	s->recvs--;
	line_push(&s->arrived, line_pop(&s->in));
	return NULL;
}

/* The completion of a RECV is handled; the RECV is posted again first. */
static inline const char *model_receive(struct model *model, u32 side)
{
	struct model_side *s = &model->sides[side];
	struct model_message message;

	if (!s->arrived.nr)
		return NULL;
	message = line_pop(&s->arrived);
	s->recvs++;
	if (message.type & KXFER_WIRE_ANSWER)
		return model_got_answer(s, message);
	return model_got_request(s, message);
}

/* A handler answers. */
static inline const char *model_answer(struct model *model, u32 side, u32 index)
{
	struct model_reply *reply = &model->sides[side].replies[index];
	struct model_message message = {
		.type = reply->type | KXFER_WIRE_ANSWER,
		.slot = index,
		.sequence = reply->sequence,
	};

	if (!reply->handling)
		return NULL;
	reply->handling = false;
	reply->unsent = true;
	kxfer_reply_posted(&reply->slot);
	return model_send(model, side, message);
}

static inline const char *model_reply_sent(struct model_reply *reply)
{
	reply->unsent = false;
	if (kxfer_reply_sent(&reply->slot) != reply->waiting)
		return reply->waiting ? "a deferred request is forgotten" :
					"a request is handled twice";
	reply->handling |= reply->waiting;
	reply->waiting = false;
	return NULL;
}

/* The completion of the oldest SEND is handled. */
static inline const char *model_sent(struct model *model, u32 side)
{
	struct model_side *s = &model->sides[side];
	struct model_message message;

	if (!s->sent.nr)
		return NULL;
	message = line_pop(&s->sent);
	if (message.type & KXFER_WIRE_ANSWER)
		return model_reply_sent(&s->replies[message.slot]);
	s->requests[message.slot].unsent = false;
	return check_freed(&s->requests[message.slot],
			   kxfer_request_sent(&s->requests[message.slot].slot));
}

/* The owner takes the answer and releases the request. */
static inline const char *model_put(struct model *model, u32 side, u32 index)
{
	struct model_request *request = &model->sides[side].requests[index];

	if (!request->taken || !request->owned || request->unanswered)
		return NULL;
	request->owned = false;
	return check_freed(request, kxfer_request_put(&request->slot));
}

/* The owner stops waiting. If the answer is there, it takes the answer instead. */
static inline const char *model_abandon(struct model *model, u32 side, u32 index)
{
	struct model_request *request = &model->sides[side].requests[index];

	if (!request->taken || !request->owned)
		return NULL;
	if (kxfer_request_abandon(&request->slot) != request->unanswered)
		return request->unanswered ? "waiting cannot be given up" :
					     "an answer that is there was given up";
	if (!request->unanswered)
		return model_put(model, side, index);
	request->owned = false;
	return NULL;
}

/* A message that an honest peer never sends. */
static inline const char *model_lie(struct model *model, u32 side, u32 index, u32 kind)
{
	struct model_request *request = &model->sides[side].requests[index];
	struct kxfer_request_slot before = request->slot;
	u8 type = KXFER_WIRE_PING | KXFER_WIRE_ANSWER;
	u64 sequence = request->sequence;
	bool unasked = true;

	switch (kind % 4) {
	case 0:
		sequence++;
		break;
	case 1:
		type = KXFER_WIRE_GRANT | KXFER_WIRE_ANSWER;
		break;
	case 2:
		type = KXFER_WIRE_PING;
		break;
	default:
		unasked = !request->unanswered;
		break;
	}
	if (!unasked)
		return NULL;
	if (kxfer_request_answered(&request->slot, type, sequence) != KXFER_ANSWER_UNASKED)
		return "an answer to nothing is taken";
	/*
	 * Padding can be compared: the copy was made by assignment and nothing was written
	 * since.
	 */
	return before.busy == request->slot.busy && before.held == request->slot.held &&
	       before.waiting == request->slot.waiting &&
	       before.sending == request->slot.sending &&
	       before.abandoned == request->slot.abandoned ? NULL :
	       "an answer to nothing changes the slot";
}

/**
 * model_step() - perform one event
 * @model: the two channels
 * @choice: event, any byte
 * @more: slot, any byte
 *
 * Return: description of the fault, or NULL.
 */
static inline const char *model_step(struct model *model, u8 choice, u8 more)
{
	u32 side = choice & 1, index = more % MODEL_SLOTS;

	switch (choice >> 1 & 7) {
	case 0:
		return model_request(model, side, index);
	case 1:
		return model_arrive(model, side);
	case 2:
		return model_receive(model, side);
	case 3:
		return model_answer(model, side, index);
	case 4:
		return model_sent(model, side);
	case 5:
		return model_put(model, side, index);
	case 6:
		return model_abandon(model, side, index);
	default:
		return model_lie(model, side, index, more / MODEL_SLOTS);
	}
}

/* Lets all messages come to rest. Return: what is left over, or NULL. */
static inline const char *model_finish(struct model *model)
{
	/* In each round every line advances by MODEL_SLOTS. */
	u32 rounds = 4 * MODEL_LINE / MODEL_SLOTS, choice, index;
	const char *wrong;

	while (rounds--)
		for (choice = 2; choice < 12; choice++)
			for (index = 0; index < MODEL_SLOTS; index++) {
				wrong = model_step(model, choice, index);
				if (wrong)
					return wrong;
			}
	for (choice = 0; choice < 2; choice++) {
		const struct model_side *s = &model->sides[choice];

		if (s->nr_answers != s->nr_requests)
			return "requests without an answer";
		if (s->recvs != 2 * MODEL_SLOTS || s->in.nr || s->arrived.nr || s->sent.nr)
			return "messages under way for ever";
		for (index = 0; index < MODEL_SLOTS; index++)
			if (s->requests[index].slot.busy || s->replies[index].slot.busy)
				return "a slot is busy for ever";
	}
	return NULL;
}

#endif /* KXFER_PURE_SLOT_MODEL_H */
