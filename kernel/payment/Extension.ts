// Response extensions: observers that a plugin adds to the payment's answer. They run after the decision, are bounded
// in time (50 ms by default; after that the header reports `processing`), and can neither fail nor alter it. Their
// answers go into the `EXTENSION-RESPONSES` header under the key that was sent (rules 4, S254–S257). A hook of a
// success adds to the `extensions` of its body and its event (`settledExtensions.ts`), with similar bounds.
import { Context, Effect, Layer, Option, Schema, type Scope } from "effect"
import type { SettlementRecord } from "../settlement/store/Settlements.ts"
import type { Payment } from "./Payment.ts"

export interface ExtensionOutcome {
  readonly status: "success" | "processing" | "rejected"
  /** A public reason, only with `rejected`. */
  readonly rejectedReason?: string
  /** Fields that the plugin left out of the accepted data, because their form is not allowed. */
  readonly dropped?: ReadonlyArray<string>
}

/** The observer's input. `verified`: valid, nothing moved yet. `settled`: the ledger moved `amount`. */
export interface PaymentObservation {
  readonly payment: Payment
  readonly stage: "verified" | "settled"
  readonly payer: string
  /** Inner transaction hash, hex, once settled. */
  readonly transaction: Option.Option<string>
  /**
   * The single use that the ledger accepts from this payer: the nonce of its authorization, with network and scheme;
   * opaque. Decoded from the payload on each call.
   */
  readonly authorization: () => Option.Option<string>
}

export interface Extension {
  /** Neutral key in `extensions`, such as `catalog`; the observer is called only when the payment carries it. */
  readonly key: string
  /**
   * The cached observation, synchronously: called first, so that a cache hit needs no fiber. Undefined, or an exception
   * (which is logged), leaves it to `observe`.
   */
  readonly recall?: (observation: PaymentObservation, now: number) => ExtensionOutcome | undefined
  /** A failure or a defect is reported as `processing` and logged, because it is the observer's own error. */
  readonly observe: (observation: PaymentObservation) => Effect.Effect<ExtensionOutcome>
}

/** A refused request, for the reports of operators: without signed data and without keys. Text from others is inert. */
export interface RefusedPayment {
  readonly operation: "verify" | "settle"
  /** A reason code of this service. */
  readonly reason: string
  readonly message: string
  /** `key:` and a label, or `anonymous`; None without a listed key. */
  readonly principal: Option.Option<string>
  readonly payer: Option.Option<string>
  /** Hex of the inner hash, if the payment was decoded that far. */
  readonly transaction: Option.Option<string>
  /** None if the body was not a payment. */
  readonly payment: Option.Option<Payment>
}

/** A success that is about to be answered, or sent as an event. */
export interface SettledAnswer {
  /** Absent for an event, which only needs the record. */
  readonly payment?: Payment
  /** The recorded outcome; it has ended as `settled`. */
  readonly record: SettlementRecord
}

/** Adds a member to `extensions` in a success's body and event; see `settledExtensions.ts` for its bounds. */
export interface SettledHook {
  /** Key on the wire; never a key that sellers write themselves, such as `offer-receipt`. */
  readonly key: string
  /** A JSON value, or None to add nothing. A failure or a defect adds nothing and is logged. */
  readonly add: (answer: SettledAnswer) => Effect.Effect<Option.Option<unknown>>
}

class ExtensionRefused extends Schema.TaggedError<ExtensionRefused>()("ExtensionRefused", {
  key: Schema.String
}) {}

export class Extensions extends Context.Service<
  Extensions,
  {
    readonly register: (extension: Extension) => Effect.Effect<void, ExtensionRefused, Scope.Scope>
    /** Declares a key for `/supported` that needs no observer, such as `payment-identifier`. */
    readonly declare: (key: string) => Effect.Effect<void, never, Scope.Scope>
    /**
     * Lets a plugin add to the `extensions` of a success's body, the only place that reaches the buyer through official
     * sellers. Each key has one hook.
     */
    readonly onSettledAnswer: (hook: SettledHook) => Effect.Effect<void, ExtensionRefused, Scope.Scope>
    /** In registration order. */
    readonly settledHooks: () => ReadonlyArray<SettledHook>
    readonly find: (key: string) => Option.Option<Extension>
    /** Whether an extension observes or declares the neutral key. */
    readonly isKnown: (key: string) => boolean
    /** Neutral keys, sorted. */
    readonly keys: () => ReadonlyArray<string>
    /** Calls the watcher after every verification, in addition to its answer; it must neither write nor wait. */
    readonly watch: (watcher: (valid: boolean) => Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
    /** Notifies the watchers; the error of a watcher does not propagate. */
    readonly verified: (valid: boolean) => Effect.Effect<void>
    /** Calls the watcher after every refusal of a verify or a settle, under the same terms as `watch`. */
    readonly watchRefusals: (
      watcher: (refused: RefusedPayment) => Effect.Effect<void>
    ) => Effect.Effect<void, never, Scope.Scope>
    /** Notifies the watchers of refusals. */
    readonly refused: (refused: RefusedPayment) => Effect.Effect<void>
  }
>()("tollkeeper/payment/Extensions") {
  static readonly layer = Layer.sync(Extensions, () => {
    const extensions = new Map<string, Extension>()
    const declared = new Set<string>()
    const verifications = makeWatchers<boolean>("a watcher of verifications failed")
    const refusals = makeWatchers<RefusedPayment>("a watcher of refusals failed")
    const hooks = new Map<string, SettledHook>()
    let hooksInOrder: ReadonlyArray<SettledHook> = []
    const register = Effect.fnUntraced(function* (extension: Extension) {
      if (extensions.has(extension.key)) return yield* new ExtensionRefused({ key: extension.key })
      yield* Effect.acquireRelease(
        Effect.sync(() => extensions.set(extension.key, extension)),
        () => Effect.sync(() => extensions.delete(extension.key))
      )
    })
    const keepHooks = (change: () => void) => {
      change()
      hooksInOrder = [...hooks.values()]
    }
    const onSettledAnswer = Effect.fnUntraced(function* (hook: SettledHook) {
      if (hooks.has(hook.key)) return yield* new ExtensionRefused({ key: hook.key })
      yield* Effect.acquireRelease(
        Effect.sync(() => keepHooks(() => hooks.set(hook.key, hook))),
        () => Effect.sync(() => keepHooks(() => hooks.delete(hook.key)))
      )
    })
    return Extensions.of({
      register,
      onSettledAnswer,
      settledHooks: () => hooksInOrder,
      declare: (key) =>
        Effect.asVoid(
          Effect.acquireRelease(
            Effect.sync(() => declared.add(key)),
            () => Effect.sync(() => declared.delete(key))
          )
        ),
      find: (key) => Option.fromUndefinedOr(extensions.get(key)),
      isKnown: (key) => extensions.has(key) || declared.has(key),
      keys: () => [...new Set([...extensions.keys(), ...declared])].sort(),
      watch: verifications.watch,
      verified: verifications.notify,
      watchRefusals: refusals.watch,
      refused: refusals.notify
    })
  })
}

/** Watchers of one kind of event. An error of one is logged and reaches neither the others nor the payment. */
const makeWatchers = <A>(failed: string) => {
  const watchers = new Set<(event: A) => Effect.Effect<void>>()
  return {
    watch: (watcher: (event: A) => Effect.Effect<void>) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => watchers.add(watcher)),
          () => Effect.sync(() => watchers.delete(watcher))
        )
      ),
    notify: (event: A) =>
      Effect.forEach(
        watchers,
        (watcher) =>
          Effect.catchCause(
            Effect.suspend(() => watcher(event)),
            (cause) => Effect.logError(failed, cause)
          ),
        { discard: true }
      )
  }
}
