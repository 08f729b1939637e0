//! Scale sets: a model, and machines that are upgraded on request.

use serde_json::{Value, json};

use crate::emulator::world::*;

fn scale_set(pools: &[&str]) -> Value {
    let pools: Vec<_> = pools.iter().map(|id| json!({ "id": id })).collect();
    json!({ "location": "westus", "sku": { "name": "Standard_B2s", "capacity": 2 }, "properties": { "virtualMachineProfile": {
        "networkProfile": { "networkInterfaceConfigurations": [{ "name": "nic", "properties": { "primary": true, "ipConfigurations": [
            { "name": "c", "properties": { "primary": true, "loadBalancerBackendAddressPools": pools } },
        ] } }] },
    } } })
}

#[test]
fn machines_follow_their_model_when_they_are_told_to() {
    let mut machine = world(at_once());
    with_balancer(&mut machine);
    let path = format!("{COMPUTE}/virtualMachineScaleSets/vmss");
    let lb = network("loadBalancers", "lb");
    let pool = format!("{lb}/backendAddressPools/pool");
    ask(
        &mut machine,
        "PUT",
        &path,
        Some(scale_set(&["/subscriptions/s/nowhere"])),
    )
    .rejected(400, "InvalidResourceReference");
    ask(&mut machine, "PUT", &path, Some(scale_set(&[]))).expect(201);
    let shown = ask(&mut machine, "PUT", &path, Some(scale_set(&[&pool])))
        .expect(200)
        .body;
    assert!(
        !shown.to_string().contains("emulated"),
        "what the emulator keeps is not shown"
    );

    let latest = |machine: &mut _| {
        let list = ask(machine, "GET", &format!("{path}/virtualMachines"), None)
            .expect(200)
            .body;
        let states = list["value"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["properties"]["latestModelApplied"].as_bool().unwrap());
        states.collect::<Vec<_>>()
    };
    let members = |machine: &azure_loadbalancer::emulator::Machine| {
        let lb = machine.get(&lb).unwrap();
        lb["properties"]["backendAddressPools"][0]["properties"]["backendIPConfigurations"]
            .as_array()
            .map_or(0, Vec::len)
    };
    assert_eq!(
        (latest(&mut machine), members(&machine)),
        (vec![false, false], 0)
    );
    let upgrade = |machine: &mut _, ids: Value| {
        ask(
            machine,
            "POST",
            &format!("{path}/manualupgrade"),
            Some(json!({ "instanceIds": ids })),
        )
    };
    upgrade(&mut machine, json!(["1"])).expect(202);
    assert_eq!(
        (latest(&mut machine), members(&machine)),
        (vec![false, true], 1)
    );
    upgrade(&mut machine, json!(["7"])).rejected(400, "InvalidParameter");
    upgrade(&mut machine, json!(["*"])).expect(202);
    assert_eq!(
        (latest(&mut machine), members(&machine)),
        (vec![true, true], 2)
    );
    let interfaces = ask(
        &mut machine,
        "GET",
        &format!("{path}/virtualMachines/1/networkInterfaces"),
        None,
    )
    .expect(200)
    .body;
    assert_eq!(
        interfaces["value"][0]["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"]
            [0]["id"],
        pool
    );

    // They are listed below the load balancer as well.
    let below = ask(
        &mut machine,
        "GET",
        &format!("{lb}/networkInterfaces"),
        None,
    );
    let below = below.expect(200).body;
    assert_eq!(below["value"].as_array().unwrap().len(), 2);
    assert_eq!(below["value"][1], interfaces["value"][0]);

    // The load balancer cannot be deleted before the model and the machines have left it.
    let delete = |machine: &mut _| ask(machine, "DELETE", &lb, None);
    delete(&mut machine).rejected(400, "LoadBalancerInUseByVirtualMachineScaleSet");
    ask(&mut machine, "PUT", &path, Some(scale_set(&[]))).expect(200);
    delete(&mut machine).rejected(400, "LoadBalancerInUseByVirtualMachineScaleSet");
    upgrade(&mut machine, json!(["*"])).expect(202);
    delete(&mut machine).expect(202);
    ask(
        &mut machine,
        "GET",
        &format!("{path}/virtualMachines/9"),
        None,
    )
    .rejected(404, "NotFound");
    ask(
        &mut machine,
        "GET",
        &format!("{path}/rollingUpgrades"),
        None,
    )
    .rejected(404, "NotFound");
}
