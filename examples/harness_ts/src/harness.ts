// A harness in TypeScript, over stubs generated from proto/: the loop of examples/harness.py.
//
//   npm install && npm run stubs && npm run build
//   FABRIC_GATEWAY=127.0.0.1:7443 FABRIC_TOKEN=... npm start
//
// FABRIC_CA_FILE names the CA of a gateway with TLS; without it the connection is in clear.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { Client, Metadata, ServiceError, credentials } from "@grpc/grpc-js";
import { OwnerServiceService } from "../gen/fabric/api/v1/owner_service";
import { SendResponse, TerminalServiceService } from "../gen/fabric/api/v1/terminal_service";
import { SandboxMode, WaitReason } from "../gen/fabric/api/v1/types";

// What ts-proto generates for a unary method: its path and how its messages are written and read.
interface Unary<Req, Res> {
  path: string;
  requestSerialize: (value: Req) => Buffer;
  responseDeserialize: (value: Buffer) => Res;
}

const address = process.env.FABRIC_GATEWAY ?? "127.0.0.1:7443";
const ca = process.env.FABRIC_CA_FILE;
const gateway = new Client(
  address,
  ca ? credentials.createSsl(readFileSync(ca)) : credentials.createInsecure(),
);
const headers = new Metadata();

// One call with its deadline. UNAVAILABLE alone is tried again, under the same request id.
function call<Req, Res>(method: Unary<Req, Res>, request: Req, seconds = 30): Promise<Res> {
  const deadline = new Date(Date.now() + seconds * 1000);
  const once = () =>
    new Promise<Res>((resolve, reject) =>
      gateway.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        headers,
        { deadline },
        (error, response) => (error ? reject(error) : resolve(response!)),
      ),
    );
  const again = async (attempt: number): Promise<Res> => {
    try {
      return await once();
    } catch (error) {
      if ((error as ServiceError).code !== 14 || attempt === 5) throw error;
      await new Promise((wake) => setTimeout(wake, 50 * 2 ** attempt));
      return again(attempt + 1);
    }
  };
  return again(0);
}

async function main(): Promise<void> {
  if (process.env.FABRIC_TOKEN) headers.set("authorization", `Bearer ${process.env.FABRIC_TOKEN}`);

  // Who: the same agent after a restart of the harness finds its sessions again.
  const { ownerToken } = await call(
    OwnerServiceService.acquire,
    {
      requestId: randomUUID(),
      agent: "example-ts",
      mode: SandboxMode.SANDBOX_MODE_DANGER_FULL_ACCESS,
      lease: undefined,
    },
  );
  headers.set("fabric-owner-token", ownerToken);
  try {
    const { session } = await call(
      TerminalServiceService.open,
      { requestId: randomUUID(), type: "python", env: [], timeout: undefined },
      70,
    );
    const sessionId = session!.sessionId;
    const send = (text: string): Promise<SendResponse> =>
      call(
        TerminalServiceService.send,
        {
          requestId: randomUUID(),
          sessionId,
          data: Buffer.from(text),
          submit: undefined,
          timeout: { seconds: 20, nanos: 0 },
        },
      );
    for (const line of ["6 * 7", "import platform", "platform.system()"]) {
      const result = await send(line);
      // Only these two mean that the program wants input, or has ended; the others are guesses.
      const exact = result.waitReason === WaitReason.WAIT_REASON_STDIN_READ;
      console.log(`${exact ? "ready" : "guess"} ${JSON.stringify(result.viewport)}`);
    }
    const closed = await call(
      TerminalServiceService.close,
      { requestId: randomUUID(), sessionId },
      70,
    );
    console.log(`closed ${closed.sessionId === sessionId}`);
  } finally {
    // Nothing of this owner stays, whatever happened above.
    await call(OwnerServiceService.release, { requestId: randomUUID() }, 130);
    gateway.close();
  }
}

main().catch((error: ServiceError) => {
  console.error(`${error.code ?? ""} ${error.details ?? error}`);
  process.exitCode = 1;
});
