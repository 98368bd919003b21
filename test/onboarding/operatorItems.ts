// An operator's possible problems, together with the first steps: a command in the wrong folder, an unconfigured
// database, an unfunded sponsor, refused payments, the banner, a receiver's pause, a page of another origin, and the
// limit that fails a payment.

export interface Outcome {
  readonly status: number
  readonly text: string
}

export interface Item {
  readonly name: string
  readonly play: () => Promise<Outcome>
  /** Content of the message: what happened and what to do. */
  readonly says: RegExp
  /** Default 1. */
  readonly status?: number
}

export interface Played {
  readonly tollkeeper: (...args: ReadonlyArray<string>) => Promise<Outcome>
  readonly inFolder: (name: string) => string
  readonly answerOf: (url: string, init?: RequestInit) => Promise<Outcome>
}

/** In a folder where no process was ever started. */
export const unstarted = ({ inFolder, tollkeeper }: Played): ReadonlyArray<Item> => [
  {
    name: "settlements list in the wrong folder",
    play: () => tollkeeper("settlements", "list", "--state", inFolder("nowhere")),
    says: /nothing was ever started over .*--state DIR.*--profile.*DATABASE_URL/
  },
  {
    name: "doctor in the wrong folder",
    play: () => tollkeeper("doctor", "--state", inFolder("nowhere")),
    says: /npm start|--state DIR/
  },
  {
    name: "hosted without DATABASE_URL",
    play: () => tollkeeper("start", "--profile", "hosted", "--state", inFolder("hosted")),
    says: /profile hosted names no database: set DATABASE_URL .*embedded_folder/
  },
  {
    name: "agents' approvals in the wrong folder",
    play: () => tollkeeper("approvals", "list", "--state", inFolder("nowhere")),
    says: /nothing was ever started over .*--state DIR.*--profile.*DATABASE_URL/
  },
  {
    name: "channels open without a database",
    play: () => tollkeeper("channels", "open", "--profile", "self-hosted", "--state", inFolder("nowhere")),
    says: /profile self-hosted names no database: set DATABASE_URL .*embedded_folder/
  },
  {
    name: "an origin with a slash at its end",
    play: () =>
      tollkeeper(
        ...["start", "--state", inFolder("slash"), "--port", "0", "--ledger-port", "0", "--ledger-https-port", "0"],
        ...["--set", 'server.allowed_origins=["https://shop.example/"]']
      ),
    says: /server\.allowed_origins\[0\]: expected an origin such as https:\/\/shop\.example, without a path/
  },
  {
    name: "a list since a time that is none",
    play: () => tollkeeper("settlements", "list", "--since", "yesterday", "--state", inFolder("nowhere")),
    says: /--since yesterday: expected a span such as 90m, 24h or 7d, or a date/
  }
]

const terms = {
  scheme: "exact",
  network: "ledger:testnet",
  asset: "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
  amount: "10000",
  payTo: "GBBD47IF6LWK7P7MDEVSCWR7DPUWV3NY3DTQEVFL4NAT4AQH3ZLLFLA5",
  maxTimeoutSeconds: 60,
  extra: { areFeesSponsored: true }
}

/** A payment that no facilitator accepts, because it is not signed. */
const unsigned = JSON.stringify({
  x402Version: 2,
  paymentRequirements: terms,
  paymentPayload: { x402Version: 2, accepted: terms, payload: { transaction: "AAAA" } }
})

/** With a facilitator that serves at `at` and has `origin` among its allowed ones. */
export const served = (
  { answerOf, tollkeeper }: Played,
  { at, banner, origin, state }: { at: string; banner: () => string; origin: string; state: string }
): ReadonlyArray<Item> => [
  {
    name: "the banner names the page that is served",
    play: async () => ({ status: 0, text: banner() }),
    says: new RegExp(`facilitator ${at} `),
    status: 0
  },
  {
    name: "a refused payment",
    play: async () => {
      const body = { method: "POST", headers: { "content-type": "application/json" }, body: unsigned }
      return answerOf(`${at}/verify`, body)
    },
    says: /"invalidReason":"invalid_exact_ledger_payload_malformed","invalidMessage":".+"/,
    status: 200
  },
  {
    name: "the refusal, found by its reason",
    play: async () => {
      const list = ["settlements", "list", "--which", "refused", "--since", "1h", "--state", state]
      for (let tries = 0; ; tries++) {
        const found = await tollkeeper(...list, "--reason", "invalid_exact_ledger_payload_malformed")
        if (tries === 20 || /^[1-9]\d* refused/m.test(found.text)) return found
        await new Promise((resolve) => setTimeout(resolve, 500))
      }
    },
    says: /^[1-9]\d* refused +verify +invalid_exact_ledger_payload_malformed +anonymous/,
    status: 0
  },
  {
    name: "settlements that ended",
    play: () => tollkeeper("settlements", "list", "--which", "settled", "--since", "24h", "--state", state),
    says: /\d+ settlements? settled/,
    status: 0
  },
  {
    name: "a preflight of a page that is allowed",
    play: async () => {
      const headers = { origin, "access-control-request-method": "POST" }
      const { headers: sent, status } = await fetch(`${at}/verify`, { method: "OPTIONS", headers })
      return {
        status,
        text: `${sent.get("access-control-allow-origin")} may send ${sent.get("access-control-allow-methods")}`
      }
    },
    says: new RegExp(`${origin} may send GET, HEAD, POST`),
    status: 204
  }
]
