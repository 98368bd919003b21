// The bodies of verify and settle, in and out: both spellings, every field that may be wrong, and a fingerprint that
// depends on the payment and not on its spelling.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { checkEnvelope, checks } from "../../../../kernel/payment/checkEnvelope.ts"
import { canonicalJson } from "../../../../kernel/payment/wire/canonicalJson.ts"
import type { Payment } from "../../../../kernel/payment/Payment.ts"
import { refusal, coreReasons } from "../../../../kernel/payment/Refusal.ts"
import { answerIn, decodePayment, encodeSettle, encodeVerify } from "../../../../kernel/payment/wire/Wire.ts"
import { Crypto } from "../../../../kernel/platform/Crypto.ts"
import { layer as cryptoLayer } from "../../../../runtime/platform/nodeCrypto.ts"

const words = { dialects: ["ledger", "stellar"], stellarPendingReason: "settlement_pending" } as const
const principal = { owner: "key:alice", source: "key:alice", keyed: true }

const terms = (network = "ledger:testnet") => ({
  scheme: "exact",
  network,
  amount: "10000",
  asset: "CASSET",
  payTo: "GPAYTO",
  maxTimeoutSeconds: 60,
  extra: { areFeesSponsored: true }
})

const bodyOf = (network?: string): any => ({
  x402Version: 2,
  paymentPayload: {
    x402Version: 2,
    accepted: terms(network),
    payload: { transaction: "AAAA" },
    resource: { url: "https://seller.example/weather" },
    extensions: { "payment-identifier": { info: { id: "0123456789abcdef" } }, bazaar: { info: 1 } }
  },
  paymentRequirements: terms(network)
})

const changed = (change: (body: any) => void, network?: string) => {
  const body = bodyOf(network)
  change(body)
  return body
}

const read = (body: unknown, spoken: Partial<typeof words> | { dialects: readonly ["stellar"] } = {}) =>
  Effect.map(Crypto, (crypto) => decodePayment(body, { principal, words: { ...words, ...spoken }, crypto })).pipe(
    Effect.provide(cryptoLayer)
  )

const payment = (body: unknown) =>
  Effect.map(read(body), (decoded) => {
    if ("_tag" in decoded) throw new Error(decoded.refusal.message)
    return decoded
  })

const wordOf = (body: unknown, spoken?: { dialects: readonly ["stellar"] }) =>
  Effect.map(read(body, spoken), (decoded) => ("_tag" in decoded ? decoded.refusal.reason : "ok"))

describe("a body that is read", () => {
  it.effect("both spellings give the same payment, keeping the request's spelling [S7, S9, S49, S50, S51]", () =>
    Effect.gen(function* () {
      const [ledger, stellar] = [yield* payment(bodyOf("ledger:testnet")), yield* payment(bodyOf("stellar:testnet"))]
      expect([ledger.dialect, stellar.dialect]).toEqual(["ledger", "stellar"])
      expect(stellar.requirements.network).toBe("ledger:testnet")
      expect(stellar.fingerprint).toBe(ledger.fingerprint)
      expect({ ...stellar, dialect: "ledger" }).toEqual(ledger)
      expect(ledger.payload).toEqual({ transaction: "AAAA" })
      expect(ledger.extensions.get("catalog")).toEqual({ sentKey: "bazaar", value: { info: 1 } })
      expect(ledger.identifier).toEqual(Option.some("0123456789abcdef"))
    })
  )

  it.effect("a body may mix spellings of one network and hold unknown fields [S48]", () =>
    Effect.gen(function* () {
      const mixed = yield* payment(
        changed((body) => {
          body.paymentPayload.accepted.network = "stellar:testnet"
          body.unknown = { deep: [1] }
          body.paymentPayload.accepted.unknown = null
          body.paymentRequirements.extra = null
        })
      )
      expect(mixed.dialect).toBe("ledger")
      expect(mixed.requirements.extra).toEqual({})
    })
  )

  it.effect("every payment has the same shape, with its fingerprint on the class", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* payment(bodyOf()), yield* payment(bodyOf())]
      const getters = [one, other].map((read) =>
        Object.values(Object.getOwnPropertyDescriptors(read)).filter(({ get }) => get !== undefined)
      )
      expect(getters).toEqual([[], []])
      expect(Object.getPrototypeOf(one)).toBe(Object.getPrototypeOf(other))
      expect(one.fingerprint).toBe(other.fingerprint)
    })
  )

  it.effect("the fingerprint covers envelope, both terms and resource URL only", () =>
    Effect.gen(function* () {
      const { fingerprint } = yield* payment(bodyOf())
      const same: ReadonlyArray<(body: any) => void> = [
        (body) => {
          body.paymentPayload.extensions = { other: true }
        },
        (body) => {
          body.paymentPayload.resource.description = "another text"
        },
        (body) => {
          body.paymentRequirements = Object.fromEntries(Object.entries(body.paymentRequirements).reverse())
        }
      ]
      for (const change of same) expect((yield* payment(changed(change))).fingerprint).toBe(fingerprint)
      const other: ReadonlyArray<(body: any) => void> = [
        (body) => {
          body.paymentPayload.payload.transaction = "AAAB"
        },
        (body) => {
          body.paymentPayload.accepted.extra.x = 1
        },
        (body) => {
          body.paymentRequirements.amount = "10001"
        },
        (body) => {
          body.paymentPayload.resource.url = "https://seller.example/other"
        },
        (body) => {
          delete body.paymentPayload.resource
        }
      ]
      for (const change of other) expect((yield* payment(changed(change))).fingerprint).not.toBe(fingerprint)
    })
  )

  it.effect("accepts decimal integer amounts, leaving others to the scheme's reason [S12]", () =>
    Effect.gen(function* () {
      const amountOf = (amount: string) =>
        Effect.map(
          payment(
            changed((body) => {
              body.paymentRequirements.amount = amount
            })
          ),
          (decoded) => decoded.requirements.amount
        )
      expect(yield* amountOf("170141183460469231731687303715884105727")).toEqual(Option.some(2n ** 127n - 1n))
      expect(yield* amountOf("0")).toEqual(Option.some(0n))
      for (const amount of ["", "-1", "+1", "1.0", "1e3", "0x10", "01", " 1", "1 ", "١", "1".repeat(40), "1_000"])
        expect([amount, yield* amountOf(amount)]).toEqual([amount, Option.none()])
    })
  )
})

describe("a body that is refused", () => {
  const cases: ReadonlyArray<readonly [string, string, (body: any) => void]> = [
    [
      "no requirements",
      "invalid_request",
      (body) => {
        delete body.paymentRequirements
      }
    ],
    [
      "requirements that are a list",
      "invalid_request",
      (body) => {
        body.paymentRequirements = []
      }
    ],
    [
      "no payload",
      "invalid_request",
      (body) => {
        body.paymentPayload = null
      }
    ],
    [
      "no accepted",
      "invalid_request",
      (body) => {
        delete body.paymentPayload.accepted
      }
    ],
    [
      "a payload of the scheme that is text",
      "invalid_request",
      (body) => {
        body.paymentPayload.payload = "AAAA"
      }
    ],
    [
      "no version",
      "invalid_request",
      (body) => {
        delete body.x402Version
      }
    ],
    [
      "a version in words",
      "invalid_request",
      (body) => {
        body.x402Version = "2"
      }
    ],
    [
      "version 1",
      "invalid_x402_version",
      (body) => {
        body.x402Version = 1
      }
    ],
    [
      "version 3 inside",
      "invalid_x402_version",
      (body) => {
        body.paymentPayload.x402Version = 3
      }
    ],
    [
      "an amount that is a number",
      "invalid_request",
      (body) => {
        body.paymentRequirements.amount = 10_000
      }
    ],
    [
      "a timeout in words",
      "invalid_request",
      (body) => {
        body.paymentRequirements.maxTimeoutSeconds = "60"
      }
    ],
    [
      "a timeout below zero",
      "invalid_request",
      (body) => {
        body.paymentRequirements.maxTimeoutSeconds = -1
      }
    ],
    [
      "a broken timeout",
      "invalid_request",
      (body) => {
        body.paymentRequirements.maxTimeoutSeconds = 1.5
      }
    ],
    [
      "a timeout beyond numbers",
      "invalid_request",
      (body) => {
        body.paymentRequirements.maxTimeoutSeconds = 1e300
      }
    ],
    [
      "no recipient",
      "invalid_request",
      (body) => {
        body.paymentPayload.accepted.payTo = ""
      }
    ],
    [
      "an asset without end",
      "invalid_request",
      (body) => {
        body.paymentRequirements.asset = "C".repeat(513)
      }
    ],
    [
      "extra that is a list",
      "invalid_request",
      (body) => {
        body.paymentRequirements.extra = []
      }
    ],
    [
      "an unknown network",
      "unsupported_network",
      (body) => {
        body.paymentRequirements.network = "eip155:1"
      }
    ],
    [
      "a network in capitals",
      "unsupported_network",
      (body) => {
        body.paymentRequirements.network = "LEDGER:TESTNET"
      }
    ],
    [
      "two networks",
      "network_mismatch",
      (body) => {
        body.paymentPayload.accepted.network = "ledger:pubnet"
      }
    ],
    [
      "an identifier that is too short",
      "invalid_request",
      (body) => {
        body.paymentPayload.extensions["payment-identifier"].info.id = "a".repeat(15)
      }
    ],
    [
      "an identifier that is too long",
      "invalid_request",
      (body) => {
        body.paymentPayload.extensions["payment-identifier"].info.id = "a".repeat(129)
      }
    ],
    [
      "an identifier in other letters",
      "invalid_request",
      (body) => {
        body.paymentPayload.extensions["payment-identifier"].info.id = "pay‮0123456789abcdef"
      }
    ],
    [
      "a required identifier that is missing",
      "payment_identifier_required",
      (body) => {
        body.paymentPayload.extensions["payment-identifier"].info = { required: true }
      }
    ]
  ]
  for (const [name, reason, change] of cases) {
    it.effect(`refuses a body with ${name} as ${reason} [S261, S273]`, () =>
      Effect.gen(function* () {
        expect(yield* wordOf(changed(change))).toBe(reason)
      })
    )
  }

  it.effect("refuses a body that is not an object [S261]", () =>
    Effect.gen(function* () {
      for (const body of [null, [], "text", 2, true, undefined]) expect(yield* wordOf(body)).toBe("invalid_request")
    })
  )

  it.effect("a disabled spelling is an unsupported network [S262]", () =>
    Effect.gen(function* () {
      expect(yield* wordOf(bodyOf("ledger:testnet"), { dialects: ["stellar"] })).toBe("unsupported_network")
      expect(yield* wordOf(bodyOf("stellar:testnet"), { dialects: ["stellar"] })).toBe("ok")
    })
  )

  it.effect("a refusal names the field and never its content", () =>
    Effect.gen(function* () {
      const decoded = yield* read(
        changed((body) => {
          body.paymentRequirements.amount = { private: "word" }
        })
      )
      expect(decoded).toMatchObject({ refusal: { message: "paymentRequirements.amount: a string is required" } })
    })
  )
})

describe("the envelope's checks", () => {
  const context = {
    network: { id: "ledger:testnet", assets: new Map([["CASSET", {}]]), timeoutSecondsMax: 300 } as never,
    hasScheme: (scheme: string) => scheme === "exact"
  }
  const both = (field: string, value: unknown) => (body: any) => {
    body.paymentRequirements[field] = value
    body.paymentPayload.accepted[field] = value
  }
  const broken: Readonly<Record<string, readonly [string, (body: any) => void]>> = {
    "the network is served": ["unsupported_network", both("network", "ledger:pubnet")],
    "the scheme is served": ["unsupported_scheme", both("scheme", "upto")],
    "both copies name the same scheme": [
      "unsupported_scheme",
      (body) => {
        body.paymentPayload.accepted.scheme = "upto"
      }
    ],
    "the buyer accepted these terms": [
      "requirements_mismatch",
      (body) => {
        body.paymentPayload.accepted.payTo = "GOTHER"
      }
    ],
    "the asset is listed": ["invalid_ledger_asset_not_allowed", both("asset", "COTHER")],
    "the timeout is within bounds": ["requirements_mismatch", both("maxTimeoutSeconds", 301)],
    "there is a timeout where something expires by it": ["invalid_request", both("maxTimeoutSeconds", 0)]
  }

  it("each envelope check is violated by one body here", () =>
    expect(Object.keys(broken)).toEqual(checks.map(({ name }) => name)))

  for (const [name, [reason, change]] of Object.entries(broken)) {
    it.effect(`refuse what breaks “${name}” as ${reason}, and by that check alone [S62, S262, S264, S273]`, () =>
      Effect.gen(function* () {
        const decoded: Payment = yield* payment(changed(change))
        expect(checkEnvelope(decoded, context)?.reason).toBe(reason)
        expect(checks.filter((check) => check.fails(decoded, context)).map((check) => check.name)).toEqual([name])
      })
    )
  }

  it.effect("a payload that nothing expires in may have a timeout of zero", () =>
    Effect.gen(function* () {
      const decoded = yield* payment(changed(both("maxTimeoutSeconds", 0)))
      expect(checkEnvelope(decoded, { ...context, isUntimed: () => true })).toBeUndefined()
      expect(checkEnvelope(decoded, { ...context, isUntimed: () => false })?.reason).toBe("invalid_request")
    })
  )

  it.effect("envelope checks compare asset, payTo and timeout; schemes compare amounts", () =>
    Effect.gen(function* () {
      for (const [field, value] of [
        ["asset", "COTHER"],
        ["payTo", "GOTHER"],
        ["maxTimeoutSeconds", 61]
      ] as const) {
        const decoded = yield* payment(
          changed((body) => {
            body.paymentPayload.accepted[field] = value
          })
        )
        expect([field, checkEnvelope(decoded, context)?.reason]).toEqual([field, "requirements_mismatch"])
      }
      expect(checkEnvelope(yield* payment(bodyOf()), context)).toBeUndefined()
      const less = changed((body) => {
        body.paymentRequirements.amount = "1"
      })
      expect(checkEnvelope(yield* payment(less), context)).toBeUndefined()
    })
  )
})

describe("answers", () => {
  const ledger = { dialect: "ledger", network: "ledger:testnet", words } as const
  const stellar = { dialect: "stellar", network: "stellar:testnet", words } as const

  it.effect("answers use the request's spelling [S8]", () =>
    Effect.gen(function* () {
      expect(answerIn(yield* payment(bodyOf("stellar:testnet")), words)).toMatchObject({
        dialect: "stellar",
        network: "stellar:testnet"
      })
      expect(encodeVerify(refusal("invalid_ledger_auth_expired", "late", Option.some("GPAYER")), stellar)).toEqual({
        isValid: false,
        invalidReason: "invalid_stellar_auth_expired",
        invalidMessage: "late",
        payer: "GPAYER"
      })
      expect(encodeVerify(refusal("invalid_ledger_auth_expired", "late"), ledger)).toEqual({
        isValid: false,
        invalidReason: "invalid_ledger_auth_expired",
        invalidMessage: "late"
      })
      expect(encodeVerify({ _tag: "Valid", payer: "GPAYER" }, ledger)).toEqual({ isValid: true, payer: "GPAYER" })
    })
  )

  it("settle answers always have transaction and network strings [S55, S56, S57, S58]", () => {
    expect(encodeSettle({ _tag: "Settled", payer: "GPAYER", transaction: "ab", amount: 10n }, ledger)).toEqual({
      success: true,
      payer: "GPAYER",
      transaction: "ab",
      network: "ledger:testnet",
      amount: "10"
    })
    // A seller's own call names no payer, and one that transfers nothing has an empty amount.
    const own = { _tag: "Settled", payer: "CCONTRACT", hasBuyer: false, transaction: "ab" } as const
    const shown = { success: true, transaction: "ab", network: "ledger:testnet" }
    expect(encodeSettle(own, ledger)).toEqual({ ...shown, amount: "" })
    expect(encodeSettle({ ...own, amount: 0n, asset: "CASSET" }, ledger)).toEqual({
      ...shown,
      amount: "0",
      asset: "CASSET"
    })
    expect(
      encodeSettle(
        { _tag: "Failed", refusal: refusal("settle_ledger_transaction_failed", "no"), transaction: Option.none() },
        stellar
      )
    ).toEqual({
      success: false,
      errorReason: "settle_stellar_transaction_failed",
      errorMessage: "no",
      transaction: "",
      network: "stellar:testnet"
    })
  })

  it("a pending answer uses the specification's or the clients' retry reason [S272]", () => {
    const pending = { _tag: "Pending", payer: "GPAYER", transaction: "ab" } as const
    const unknown = "settle_stellar_transaction_status_unknown"
    expect(encodeSettle(pending, ledger)).toMatchObject({
      success: false,
      errorReason: "settle_ledger_transaction_status_unknown",
      transaction: "ab"
    })
    expect(encodeSettle(pending, stellar)).toMatchObject({
      success: false,
      errorReason: "settlement_pending",
      errorMessage: unknown,
      transaction: "ab"
    })
    expect(encodeSettle(pending, { ...stellar, words: { ...words, stellarPendingReason: unknown } })).toMatchObject({
      errorReason: unknown
    })
  })

  it("answers have one row for each core reason", () => {
    const reasons = coreReasons.map(({ reason }) => reason)
    expect(new Set(reasons).size).toBe(reasons.length)
    for (const reason of reasons) expect(reason).toMatch(/^[a-z0-9_]+$/)
  })
})

describe("canonicalJson", () => {
  it("canonicalJson is one text for equal JSON", () => {
    expect(canonicalJson({ b: [1, { d: null, c: 'é\u2028"' }], a: true, u: undefined })).toBe(
      '{"a":true,"b":[1,{"c":"é\u2028\\"","d":null}]}'
    )
    expect(canonicalJson({ "\ud800": "\udfff" })).toBe('{"\\ud800":"\\udfff"}')
    expect(canonicalJson({ é: 1, z: 2, Z: 3, "": 4 })).toBe('{"":4,"Z":3,"z":2,"é":1}')
  })
})
