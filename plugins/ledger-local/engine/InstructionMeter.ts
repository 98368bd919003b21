// An estimate of the instructions the network would meter, from calibrated constants: a base per kind of call and a cost
// per account authentication and signature. The anchors are metered transactions of the test network; a simulation pads the
// estimate as the RPC does (4 %, at least 50,000). It is a price, not a limit: nothing here stops a call.

/** Account authentication of one address entry with its nonce, without the signature check itself. */
const ADDRESS_AUTH = 126_364
const SIGNATURE = 400_000
const WASM_CALL = 370_000

const SAC: Readonly<Record<string, number>> = {
  transfer: 200_000,
  transfer_from: 240_000,
  mint: 200_000,
  burn: 165_000,
  burn_from: 205_000,
  clawback: 200_000,
  approve: 190_000,
  set_authorized: 190_000,
  set_admin: 170_000,
  trust: 200_000
}
const SAC_READ = 110_000

export class InstructionMeter {
  #total = 0

  get total(): number {
    return this.#total
  }

  add(instructions: number): void {
    this.#total += instructions
  }

  sacCall(fn: string): void {
    this.#total += SAC[fn] ?? SAC_READ
  }

  wasmCall(): void {
    this.#total += WASM_CALL
  }

  addressAuth(): void {
    this.#total += ADDRESS_AUTH
  }

  signature(): void {
    this.#total += SIGNATURE
  }
}
