/* The protocol of PROTOCOL.md as riders' programs and one controller play it, over a broker that is the attacker. A
 * Bluetooth link is one more broker: what goes over it can be lost, doubled, put in another order or played again, and
 * the controller makes the same checks whichever way a command came.
 *
 * `check.py` runs spin on it and on its mutations; README.md says what is modelled and how to read what spin finds.
 *
 * One run of a rider's program is one `Rider`: it asks one question, and gives the command that follows from the
 * answer. The question and the command are named by the number of their run. Whatever was sent is known to the broker
 * for ever: it delivers any of it, on any topic, at any moment, as often as it likes, or never. Whatever was signed is
 * known for ever as well, and each rider is shown any of it, or nothing. */

#ifndef RUNS_OF_A
#define RUNS_OF_A 2 /* runs of device A, an honest rider's: a second one begins while the first may still go on */
#endif
#ifndef RUNS_OF_B
#define RUNS_OF_B 1 /* runs of device B, whose rider has a valid token and a program that cheats */
#endif
#ifndef STEPS
#define STEPS 1
#endif
#ifndef STOPS
#define STOPS 1 /* stop commands, from either device */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef CARRIERS
#define CARRIERS 1 /* 2: a rider who has lost one carrier asks by the other what became of the command */
#endif
#ifndef NOTICES
#define NOTICES 0 /* notices of the operator's: of two, the second revokes device B */
#endif

/* -DWITNESS=n makes reaching a place a fault: spin then shows a way there. A model in which nothing happens would
 * satisfy every assertion. */
#ifndef WITNESS
#define WITNESS 0
#endif
#define REACHED(n) assert(n != WITNESS)

#define RUNS (RUNS_OF_A + RUNS_OF_B)
#define FORGED RUNS /* the number of a command that no device has signed */
#define NOBODY 7
#define DEVICE(r) ((r) >= RUNS_OF_A)
#define BIT(i) (1 << (i))

mtype = {
  idle, asking, commanding, doubting, refused, over,    /* how far a rider's run is */
  closed, opened, unknown,                              /* where a step is, and where it is to go */
  resting, committing, preparing, moving                /* what the controller does with it */
};

typedef Session {
  mtype is = idle;
  bit step;
  /* The command. Its challenge is the one that answered the question of this run, in this epoch. */
  bit opens;
  unsigned epoch : 2;
  unsigned challenge : 3;
  bit wasSent;
  bit late; /* its deadline has passed while the controller was busy with it */
  /* What the controller has signed about it. */
  unsigned answered : 3; /* the epochs in which its question was answered with a challenge, a bit each */
  bit isRefused;         /* its command was refused in its epoch */
#ifdef RIDER_BELIEVES_ANY_EPOCH
  bit isRefusedLater;    /* ... and in another one */
#endif
  unsigned final : 2;    /* the last answer to its command: 1 at rest where it wanted, 2 elsewhere or a fault */
  bit isThere;           /* the answer to its question in doubt: the step rests where it wanted */
  /* For the assertions alone: the commands of the same device and step that were sent before this one. */
  byte older;
};
Session session[RUNS + 1];

/* The controller's memory: gone in a crash. */
byte epoch;
byte asked;       /* the questions that it has seen */
#ifdef SEEN_BY_CARRIER
byte seenBy[2];   /* the commands that came by each carrier */
bit carrier;      /* by which the present one came */
#else
byte seen;        /* the commands that it has seen */
#endif
byte seenStops;
byte good;        /* the challenges of this epoch that can still be used */

typedef Step {
  mtype position = closed;
  mtype activity = resting;
  bit hangs;              /* the journal does not answer */
  unsigned by : 3 = NOBODY;      /* the command that is obeyed */
  unsigned first : 3 = NOBODY;   /* ... and the one that it turned round */
  unsigned waiting : 3 = NOBODY; /* the command whose tag's counter is on its way to the journal */
  unsigned holder : 2;    /* 1 + the device that alone may close the step for now; 0 is none */
};
Step step[STEPS];

/* The operator's notices, by their sequence number: 0 is none. */
byte kept;   /* the one in the journal */
byte notice; /* the one in force */

/* Stop commands: 1 + the epoch that each names; 0 is not sent. */
typedef Stop { unsigned names : 3; bit step; };
Stop stop[STOPS + 1];

/* For the assertions alone. */
byte moved;     /* commands that began a motion */
byte fulfilled; /* commands whose step came to rest where they wanted it */
byte reached;   /* commands whose step was at rest where they wanted it at some time after they were sent */
#ifdef DOUBT_WITHOUT_NONCE
byte stood[STEPS]; /* where a step ever was at rest: 1 closed, 2 open, so that somebody has a statement of it */
#endif
byte spent;     /* challenges of this epoch that a command was obeyed for */
byte overtaken; /* commands of which a newer one of the same device and step was obeyed */
byte barred;    /* challenges of this epoch that were given before a stop */
byte stopped;   /* stop commands that were obeyed */
bit revoked;    /* device B: the notice that says so has been in force */
byte ended;     /* riders and stops that are finished */

/* ---- The controller ---- */

#define WAITS(m) (session[m].is == commanding || session[m].is == doubting)

/* An answer that nobody waits for any more leaves no trace in this model. */
inline refuse(m) {
  printf("  the controller refuses command %d\n", m);
  session[m].late = 0;
  if
  :: WAITS(m) -> session[m].isRefused = 1
  :: else
  fi
}

#define AT_TARGET(m, s) \
  (step[s].position == opened && session[m].opens || step[s].position == closed && !session[m].opens)

/* The last answer to a command that was obeyed. */
inline conclude(m, s) {
  if
  :: m == NOBODY || !WAITS(m) -> skip
  :: m != NOBODY && WAITS(m) && AT_TARGET(m, s) ->
    fulfilled = fulfilled | BIT(m);
    session[m].final = 1
  :: else -> session[m].final = 2
  fi
}

/* For the assertions alone. */
inline noteRest(s) {
#if CARRIERS > 1
  for (i : 0 .. RUNS - 1) {
    if
    :: WAITS(i) && session[i].step == s && AT_TARGET(i, s) -> reached = reached | BIT(i)
    :: else
    fi
  };
  i = 0
#ifdef DOUBT_WITHOUT_NONCE
  ;
  if
  :: step[s].position == closed -> stood[s] = stood[s] | 1
  :: step[s].position == opened -> stood[s] = stood[s] | 2
  :: else
  fi
#endif
#else
  skip
#endif
}

inline rest(s, place) {
  printf("  step %d rests %e, for command %d\n", s, place, step[s].by);
  step[s].position = place;
  step[s].activity = resting;
  noteRest(s);
  conclude(step[s].by, s);
  conclude(step[s].first, s);
  step[s].by = NOBODY;
  step[s].first = NOBODY
}

/* Nothing began. */
inline abandon(s) {
  refuse(step[s].by);
  step[s].by = NOBODY;
  step[s].activity = resting;
  step[s].hangs = 0
}

/* Takes the challenges of a device, or of all (2), for a step. */
inline void(s, device) {
  for (i : 0 .. RUNS - 1) {
    if
    :: session[i].step == s && (device == 2 || DEVICE(i) == device) -> good = good & ~BIT(i)
    :: else
    fi
  };
  i = 0
}

/* Refuses the command of a device, or of anybody (2), that waits for its tag's counter. */
inline turnAway(s, device) {
  if
  :: step[s].waiting != NOBODY && (device == 2 || DEVICE(step[s].waiting) == device) ->
    REACHED(6);
    refuse(step[s].waiting);
    step[s].waiting = NOBODY
  :: else
  fi
}

/* A command is obeyed: here everything is asserted that a motion has to rest on. */
inline assertAuthority(m, s) {
  assert(m < RUNS && session[m].epoch == epoch);        /* signed, and of this run of the controller */
  assert(session[m].step == s && session[session[m].challenge].step == s);
  assert(DEVICE(session[m].challenge) == DEVICE(m));        /* with a challenge of its own, given in this run */
  assert(session[session[m].challenge].answered & BIT(epoch));
  assert(!(overtaken & BIT(m)));                        /* and no newer one was obeyed */
  assert(!(barred & BIT(session[m].challenge)))             /* and nobody has stopped the step since */
}

inline obey(m, s) {
  printf("  the controller obeys command %d\n", m);
  assertAuthority(m, s);
  assert(!(spent & BIT(session[m].challenge)));             /* for the first time */
  spent = spent | BIT(session[m].challenge);
  overtaken = overtaken | session[m].older
}

inline begin(s) {
  printf("  step %d begins to move for command %d\n", s, step[s].by);
  assertAuthority(step[s].by, s);
  assert(!(moved & BIT(step[s].by)));
  assert(!session[step[s].by].late);
  assert(session[step[s].by].is != refused);
  assert(session[step[s].by].opens || step[s].holder == 0 || step[s].holder == 1 + DEVICE(step[s].by));
  moved = moved | BIT(step[s].by);
  session[step[s].by].late = 0;
  step[s].holder = 0;
  step[s].activity = moving;
  REACHED((epoch == 0 -> 9 : 3))
}

#define RESERVED(m, s) \
  (step[s].activity == resting && !session[m].opens && step[s].holder != 0 && step[s].holder != 1 + DEVICE(m))

/* Every check but the step's state was passed. */
inline undertake(m, s) {
  if
  :: step[s].activity == moving && DEVICE(step[s].by) == DEVICE(m) && session[step[s].by].opens != session[m].opens &&
    step[s].first == NOBODY ->
    /* Turned round by the device that began it. */
    obey(m, s);
    step[s].first = step[s].by;
    step[s].by = m;
    begin(s);
    REACHED(4)
  :: else ->
    if
    :: step[s].activity != resting -> refuse(m)
#ifndef NO_RESERVATION
    :: RESERVED(m, s) -> REACHED(5); refuse(m)
#endif
    :: step[s].activity == resting ->
      if
#ifndef NO_RESERVATION
      :: RESERVED(m, s) -> step[s].holder = 0 /* its time is over */
#endif
      :: else
      fi;
      if
      :: AT_TARGET(m, s) ->
        obey(m, s);
        conclude(m, s)
      :: else ->
        obey(m, s);
        step[s].by = m;
        step[s].activity = committing
      fi
    fi
  fi
}

#ifdef NO_DEVICE_CHECK
#define OWN(m) 1
#else
/* A forged command says that it is from the device whose challenge it names. */
#define OWN(m) (m == FORGED || DEVICE(session[m].challenge) == DEVICE(m))
#endif
#ifdef NO_STEP_CHECK
#define HERE(m, topic) 1
#else
#define HERE(m, topic) (session[m].step == topic && session[session[m].challenge].step == topic)
#endif
#ifdef NO_SIGNATURE_CHECK
#define SIGNED(m) 1
#else
#define SIGNED(m) (m != FORGED)
#endif
#ifdef NO_SEEN_SET
#define NEW(m) 1
#elif defined(SEEN_BY_CARRIER)
#define NEW(m) (!(seenBy[0] & seenBy[1] & BIT(m)))
#else
#define NEW(m) (!(seen & BIT(m)))
#endif
#ifdef NO_DEADLINE_AFTER_JOURNAL
#define IN_TIME(m) 1
#else
#define IN_TIME(m) (!session[m].late)
#endif
/* A challenge of another run has another value: it is none of those that are known. */
#define KNOWN(m) ((good & BIT(session[m].challenge)) && OWN(m))

/* What leaves no trace is not delivered, so that spin sees when nothing can go on: a command without a signature, which
 * gets no answer; one of another run, which is `expired`, and one that was seen, which is `replayed`: nobody acts on
 * such an answer. */
#ifdef RIDER_BELIEVES_ANY_EPOCH
#define LEAVES_A_TRACE(m) (SIGNED(m) && NEW(m))
#else
#define LEAVES_A_TRACE(m) (SIGNED(m) && NEW(m) && session[m].epoch == epoch)
#endif

inline see(m) {
#ifdef SEEN_BY_CARRIER
  if
  :: !(seenBy[0] & BIT(m)) -> carrier = 0
  :: !(seenBy[1] & BIT(m)) -> carrier = 1
  fi;
  printf("  ... by carrier %d\n", carrier);
  seenBy[carrier] = seenBy[carrier] | BIT(m);
  carrier = 0
#else
  seen = seen | BIT(m)
#endif
}

inline judge(m, topic) {
  if
#ifdef RIDER_BELIEVES_ANY_EPOCH
  :: session[m].epoch != epoch -> see(m); session[m].isRefusedLater = 1
#endif
  :: else ->
    see(m);
    if
    :: true -> refuse(m) /* the challenge is too old, or was voided with one that a refused command used */
    :: !KNOWN(m) -> refuse(m)
    :: KNOWN(m) ->
      good = good & ~BIT(session[m].challenge); /* used up, whatever the command is refused for */
      if
      :: !HERE(m, topic) -> refuse(m)
      :: else ->
#ifndef NO_VOIDING
        void(topic, DEVICE(m));
#endif
#ifdef NO_USED_SET
        good = good | BIT(session[m].challenge);
#endif
#ifndef WAITING_IS_FORGOTTEN
        turnAway(topic, DEVICE(m));
#endif
        if
        :: notice == 2 && DEVICE(m) == 1 -> REACHED(8); refuse(m)
        :: else ->
          assert(!(revoked && DEVICE(m) == 1));
          if
          :: true -> refuse(m) /* deadline, age of the challenge, token, proof, inputs: any check can fail */
          :: true -> undertake(m, topic)
          :: step[topic].waiting == NOBODY -> /* a dynamic tag's counter is written first */
            printf("  command %d waits for the journal\n", m);
            step[topic].waiting = m
          fi
        fi
      fi
    fi
  fi
}

/* One on another topic is refused, which is as if it were lost. */
inline question(q, topic) {
  asked = asked | BIT(q);
  if
  :: session[q].step == topic ->
    good = good | BIT(q);
    session[q].answered = session[q].answered | BIT(epoch)
  :: else
  fi
}

inline halt(n, topic) {
  seenStops = seenStops | BIT(n);
  if
#ifndef NO_EPOCH_CHECK
  :: stop[n].names != 1 + epoch -> skip /* `expired` */
#endif
  :: stop[n].step != topic -> skip /* `wrong_step` */
  :: else ->
    printf("  the controller obeys stop %d\n", n);
    assert(stop[n].names == 1 + epoch);
    assert(!(stopped & BIT(n)));
    stopped = stopped | BIT(n);
    for (i : 0 .. RUNS - 1) {
      if
      :: session[i].step == topic && (session[i].answered & BIT(epoch)) -> barred = barred | BIT(i)
      :: else
      fi
    };
    i = 0;
#ifndef STOP_WITHOUT_VOIDING
    void(topic, 2);
#endif
#ifndef WAITING_IS_FORGOTTEN
    turnAway(topic, 2);
#endif
    if
    :: step[topic].activity == moving -> REACHED(7); rest(topic, unknown)
#ifndef STOP_ONLY_MOTION
    :: step[topic].activity == committing || step[topic].activity == preparing -> abandon(topic)
#endif
    :: else
    fi
  fi
}

/* What becomes of a step by itself. It ends only at rest, when nobody wants anything any more: whatever gets stuck is
 * an invalid end state. */
proctype Vehicle(byte s) {
  byte i, m;
  do
  :: atomic { step[s].waiting != NOBODY ->
      m = step[s].waiting;
      step[s].waiting = NOBODY;
      if
      :: IN_TIME(m) -> undertake(m, s)
      :: true -> refuse(m)
      fi;
      m = 0 }
  :: atomic { step[s].activity == committing && !step[s].hangs ->
      if
      :: step[s].activity = preparing
      :: true -> abandon(s)
      :: step[s].hangs = 1
      fi }
#ifndef NO_JOURNAL_LIMIT
  :: atomic { step[s].activity == committing && step[s].hangs -> abandon(s) }
#endif
  :: atomic { step[s].activity == committing && !session[step[s].by].late -> session[step[s].by].late = 1 }
  :: atomic { step[s].activity == preparing && !session[step[s].by].late -> session[step[s].by].late = 1 }
  :: atomic { step[s].waiting != NOBODY && !session[step[s].waiting].late -> session[step[s].waiting].late = 1 }
  :: atomic { step[s].activity == preparing ->
      if
      :: IN_TIME(step[s].by) -> begin(s)
      :: true -> abandon(s)
      fi }
  :: atomic { step[s].activity == moving ->
      if
      :: session[step[s].by].opens -> i = DEVICE(step[s].by); rest(s, opened); step[s].holder = 1 + i; i = 0
      :: !session[step[s].by].opens -> rest(s, closed)
      :: rest(s, unknown) /* a fault */
      fi }
  :: atomic { ended == RUNS + STOPS && step[s].activity == resting && step[s].waiting == NOBODY -> break }
  od
}

/* ---- The broker, which is the attacker ---- */

inline anywhere(topic) {
#if STEPS > 1
  if
  :: topic = 0
  :: topic = 1
  fi
#else
  topic = 0
#endif
}

/* Delivers what run n has sent. */
proctype Broker(byte n) {
  byte i, topic;
end:
  do
  /* An honest rider who has gone makes nothing of a late challenge; a cheat may. */
  :: atomic { (session[n].is == asking || DEVICE(n) == 1 && session[n].is != idle) && !(asked & BIT(n)) ->
      anywhere(topic);
      printf("the broker delivers question %d to step %d\n", n, topic);
      question(n, topic);
      topic = 0 }
  :: atomic { session[n].wasSent && LEAVES_A_TRACE(n) ->
      anywhere(topic);
      printf("the broker delivers command %d to step %d\n", n, topic);
      judge(n, topic);
      topic = 0 }
  /* Injects a command that names this run's challenge, in the name of the device that it was given to. */
  :: atomic { SIGNED(FORGED) && (good & BIT(n)) ->
      topic = session[n].step;
      session[FORGED].step = topic;
      session[FORGED].opens = 1;
      session[FORGED].epoch = epoch;
      session[FORGED].challenge = n;
      printf("the broker delivers a forged command with the challenge of question %d\n", n);
      judge(FORGED, topic);
      session[FORGED].step = 0;
      session[FORGED].opens = 0;
      session[FORGED].epoch = 0;
      session[FORGED].challenge = 0;
      topic = 0 }
  od
}

proctype StopBroker(byte n) {
  byte i, topic;
end:
  do
  :: atomic { stop[n].names != 0 && !(seenStops & BIT(n)) ->
      anywhere(topic);
      printf("the broker delivers stop %d to step %d\n", n, topic);
      halt(n, topic);
      topic = 0 }
  od
}

/* Delivers one of the notices that the operator has signed, as often as it likes, or never. */
proctype NoticeBroker(byte n) {
end:
  do
#ifdef NO_NOTICE_SEQUENCE
  :: atomic { n != kept -> kept = n }
#else
  :: atomic { n > kept -> kept = n }
#endif
  :: atomic { kept == n && notice != n ->
      printf("notice %d is in force\n", n);
      notice = n;
      if
      :: n == 2 -> revoked = 1
      :: else
      fi }
  od
}

/* The controller's program ends at any moment, and starts again with what its journal says. */
proctype Power() {
  byte i;
end:
  do
  :: atomic { epoch < CRASHES ->
      epoch++;
      printf("the controller is started again: epoch %d\n", epoch);
      asked = 0;
#ifdef SEEN_BY_CARRIER
      seenBy[0] = 0;
      seenBy[1] = 0;
#else
      seen = 0;
#endif
      seenStops = 0;
      good = 0;
      spent = 0;
      barred = 0;
#ifdef NOTICE_NOT_JOURNALED
      kept = 0;
#endif
      notice = kept;
      if
      :: kept == 2 -> revoked = 1
      :: else
      fi;
      for (i : 0 .. STEPS - 1) {
        if
        /* The journal says that a motion began, or the note that it ended did not reach the medium. */
        :: step[i].position = unknown
        :: step[i].activity == resting || step[i].activity == committing -> skip
        fi;
        step[i].activity = resting;
        step[i].hangs = 0;
        if
        :: step[i].by != NOBODY -> session[step[i].by].late = 0
        :: else
        fi;
        if
        :: step[i].waiting != NOBODY -> session[step[i].waiting].late = 0
        :: else
        fi;
        step[i].by = NOBODY;
        step[i].first = NOBODY;
        step[i].waiting = NOBODY;
        step[i].holder = 0
      };
      i = 0 }
  od
}

/* ---- The riders ---- */

inline command(r, e, q) {
  session[r].epoch = e;
  session[r].challenge = q;
  session[r].is = commanding;
  session[r].wasSent = 1;
  if
  :: session[r].opens = 0
  :: session[r].opens = 1
  fi;
  printf("rider %d sends command %d: open %d, epoch %d, challenge %d\n", r, r, session[r].opens, e, q);
#if CARRIERS > 1
  if
  :: step[session[r].step].activity != moving && AT_TARGET(r, session[r].step) -> reached = reached | BIT(r)
  :: else
  fi;
#endif
  for (i : 0 .. RUNS - 1) {
    if
    :: i != r && session[i].wasSent && DEVICE(i) == DEVICE(r) && session[i].step == session[r].step ->
      session[r].older = session[r].older | BIT(i)
    :: else
    fi
  };
  i = 0
}

proctype Rider(byte r) {
  byte i, q, e;
  atomic {
    /* The runs of a device are alike: it is enough to look at one order. */
    (r == 0 || r == RUNS_OF_A || session[r - (r > 0)].is != idle);
#if STEPS > 1
    if
    :: session[r].step = 0
    :: session[r].step = 1
    fi;
#endif
    session[r].is = asking;
    printf("rider %d asks\n", r)
  };
  do
  :: atomic { session[r].is == asking && session[r].answered != 0 ->
      q = r;
      if
      :: session[q].answered & 1 -> e = 0
      :: session[q].answered & 2 -> e = 1
      :: session[q].answered & 4 -> e = 2
      fi;
      command(r, e, q);
      e = 0;
      q = 0 }
  /* A cheat names any challenge of this run of the controller: whoever listens can read it in its statement. */
  :: atomic { session[r].is == asking && DEVICE(r) == 1 ->
      for (q : 0 .. RUNS - 1) {
        if
        :: session[q].answered & BIT(epoch) -> break
        :: true
        fi
      };
      if
      :: q < RUNS -> e = epoch; command(r, e, q)
      :: else
      fi;
      e = 0;
      q = 0 }
  :: atomic { session[r].is == asking ->
      printf("rider %d gives up\n", r);
      session[r].is = over } /* no answer in time, a refusal, or interrupted */
  /* The step is shown to be where the rider wants it. */
#ifdef SUCCESS_WITHOUT_NONCE
  :: atomic { session[r].is == commanding && step[session[r].step].activity == resting &&
      (step[session[r].step].position == opened && session[r].opens ||
       step[session[r].step].position == closed && !session[r].opens) ->
      assert(fulfilled & BIT(r));
      session[r].is = over }
#endif
#if CARRIERS > 1
  :: atomic { session[r].is == commanding && DEVICE(r) == 0 ->
      printf("rider %d loses the carrier of its command, and asks by the other where the step is\n", r);
      session[r].is = doubting }
  /* The controller answers. It names its run, which must be that of the command. */
  :: atomic { session[r].is == doubting && !session[r].isThere && session[r].epoch == epoch &&
#ifdef DOUBT_WITHOUT_NONCE
      (stood[session[r].step] & (session[r].opens -> 2 : 1)) ->
#else
      step[session[r].step].activity == resting && AT_TARGET(r, session[r].step) ->
#endif
      session[r].isThere = 1 }
  :: atomic { session[r].is == doubting && session[r].isThere ->
      printf("rider %d is shown that the step is where it was wanted\n", r);
      assert(reached & BIT(r));
      REACHED(10);
      session[r].is = over }
#endif
  :: atomic { WAITS(r) && session[r].final == 1 ->
      printf("rider %d is shown success\n", r);
      assert(fulfilled & BIT(r));
      REACHED(1);
      session[r].is = over }
  /* Nothing is shown to have moved. */
#ifdef RIDER_BELIEVES_ANY_EPOCH
  :: atomic { WAITS(r) && (session[r].isRefused || session[r].isRefusedLater) ->
#else
  :: atomic { WAITS(r) && session[r].isRefused ->
#endif
      printf("rider %d is shown a refusal\n", r);
      assert(!(moved & BIT(r)) && !(fulfilled & BIT(r)));
      REACHED(2);
      session[r].is = refused }
  /* The step is shown as one that may have moved: it stands elsewhere, or there was no answer in time. */
  :: atomic { WAITS(r) ->
      printf("rider %d is shown that the step may have moved\n", r);
      session[r].is = over }
  :: atomic { session[r].is == over || session[r].is == refused ->
      session[r].isRefused = 0;
      session[r].final = 0;
      session[r].isThere = 0;
      reached = reached & ~BIT(r);
      fulfilled = fulfilled & ~BIT(r);
      ended++;
      break }
  od
}

/* Whoever sends it knows the epoch from some statement, perhaps an old one that the broker has kept. */
proctype Stopper(byte n) {
  byte e;
  atomic {
#if STEPS > 1
    if
    :: stop[n].step = 0
    :: stop[n].step = 1
    fi;
#endif
    if
    :: e = epoch
    :: epoch > 0 -> e = epoch - 1
    fi;
    stop[n].names = 1 + e;
    printf("a rider sends stop %d: epoch %d\n", n, e);
    ended++
  }
}

init {
  byte n;
  atomic {
    for (n : 0 .. STEPS - 1) {
      if
      :: true
      :: step[n].position = opened
      fi;
#ifdef DOUBT_WITHOUT_NONCE
      stood[n] = (step[n].position == opened -> 2 : 1);
#endif
      run Vehicle(n)
    };
    for (n : 0 .. RUNS - 1) { run Rider(n); run Broker(n) };
    n = 0;
    do
    :: n < STOPS -> run Stopper(n); run StopBroker(n); n++
    :: else -> break
    od;
    for (n : 1 .. NOTICES) { run NoticeBroker(n) };
    run Power();
    n = 0
  }
}
